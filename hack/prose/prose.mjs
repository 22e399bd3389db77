// Checks Markdown files for plain technical English: node prose.mjs FILE...
// Prints each problem and the number of problems per file; exits with 1 if there is any.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { TextlintKernel } from "@textlint/kernel";
import markdown from "@textlint/textlint-plugin-markdown";
import plain from "./rule.mjs";

const kernel = new TextlintKernel();

/** lint returns textlint's messages about a Markdown text. */
export async function lint(text, filePath = "text.md") {
  const result = await kernel.lintText(text, {
    filePath,
    ext: ".md",
    plugins: [{ pluginId: "markdown", plugin: markdown.default ?? markdown }],
    rules: [{ ruleId: "plain", rule: plain }],
  });
  return result.messages;
}

async function main(files) {
  if (files.length === 0) {
    console.error("usage: node prose.mjs FILE...");
    return 2;
  }
  const counts = [];
  for (const file of files) {
    const messages = await lint(readFileSync(file, "utf8"), file);
    for (const { loc, message } of messages) console.log(`${file}:${loc.start.line}:${loc.start.column}: ${message}`);
    if (messages.length > 0) counts.push(`${String(messages.length).padStart(6)}  ${file}`);
  }
  if (counts.length > 0) console.log(["", ...counts].join("\n"));
  return counts.length > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = await main(process.argv.slice(2));
