// The textlint rule: words.json applied to the text of a document, without its code.
import { readFileSync } from "node:fs";

const list = JSON.parse(readFileSync(new URL("words.json", import.meta.url), "utf8"));

/** The word list, with compiled patterns. prose.go compiles the same file in the same way. */
export const rules = list.rules.map((rule) => ({
  ...rule,
  expression: new RegExp(`(?<![\\w-])(?:${rule.pattern.replaceAll(" ", "\\s+")})(?![\\w-])`, "gi"),
}));

/** The highest number of words in a sentence. */
export const maxWords = list.maxWords;

/** problems lists what is wrong in a text: {index, text} with the index of the first character. */
export function problems(text) {
  const found = [];
  for (const { expression, use } of rules) {
    for (const match of text.matchAll(expression)) {
      found.push({ index: match.index, text: `"${match[0].replace(/\s+/g, " ")}": use ${use}` });
    }
  }
  let start = 0;
  for (const end of text.matchAll(/[.!?:;](?=\s|$)|$/g)) {
    const sentence = text.slice(start, end.index + 1);
    const words = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length;
    if (words > maxWords) {
      found.push({ index: start + sentence.search(/\S/), text: `a sentence of ${words} words: split it, at most ${maxWords}` });
    }
    start = end.index + 1;
  }
  return found.sort((a, b) => a.index - b.index);
}

/** The rule: each paragraph, heading and table cell is one text, whatever its line breaks. */
export default function plain(context) {
  const { Syntax, RuleError, report, getSource, locator } = context;
  const check = (node) => {
    const text = Array.from({ length: node.range[1] - node.range[0] }, () => " ");
    const fill = (part) => {
      const at = part.range[0] - node.range[0];
      if (part.type === Syntax.Str) {
        for (const [i, character] of [...getSource(part).split("")].entries()) text[at + i] = character;
      } else if (part.type === Syntax.Code) {
        text.fill("x", at, part.range[1] - node.range[0]);
      }
      for (const child of part.children ?? []) fill(child);
    };
    fill(node);
    for (const problem of problems(text.join(""))) {
      report(node, new RuleError(problem.text, { padding: locator.at(problem.index) }));
    }
  };
  return { [Syntax.Paragraph]: check, [Syntax.Header]: check, [Syntax.TableCell]: check };
}
