import assert from "node:assert/strict";
import { test } from "node:test";
import { lint } from "./prose.mjs";
import { maxWords, problems, rules } from "./rule.mjs";

for (const { pattern, expression, bad, good } of rules) {
  test(`rule ${pattern}`, () => {
    assert.ok(bad.match(expression), `does not match its bad example: ${bad}`);
    assert.deepEqual(problems(good), [], `its good example has problems: ${good}`);
  });
}

const documents = {
  "a phrase across a line break": ["The job\nis told nothing.", 1],
  "a phrase across emphasis": ["The job **is** told nothing.", 1],
  "a phrase in a heading": ["# A queue that is theirs\n", 1],
  "a phrase in a table": ["| a | b |\n|---|---|\n| theirs | b |\n", 1],
  "a phrase in a list": ["- one\n- two is theirs\n", 1],
  "a phrase in inline code": ["The value `theirs` is allowed.", 0],
  "a phrase in a code block": ["```sh\necho theirs\n```\n", 0],
  "a phrase in the address of a link": ["See [the page](docs/theirs.md).", 0],
  "a phrase in the text of a link": ["See [theirs](docs/page.md).", 1],
  "part of a longer word": ["The recommended value.", 0],
  "part of a hyphenated word": ["The master-slave pattern and non-news.", 0],
  "capital letters": ["Theirs.", 1],
  "the longest sentence": [`${"word ".repeat(maxWords).trim()}.`, 0],
  "a sentence that is too long": [`${"word ".repeat(maxWords + 1).trim()}.`, 1],
  "two sentences": [`${"word ".repeat(maxWords).trim()}. ${"word ".repeat(maxWords).trim()}.`, 0],
  "a version is no end of a sentence": [`${"word ".repeat(maxWords - 1)}1.37 word.`, 1],
};
for (const [name, [text, want]] of Object.entries(documents)) {
  test(name, async () => assert.equal((await lint(text)).length, want));
}

test("a problem has the line and column of its first word", async () => {
  const [{ loc }] = await lint("# A heading\n\nThe first line\nand theirs.\n");
  assert.deepEqual(loc.start, { line: 4, column: 5 });
});
