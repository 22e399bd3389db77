package dashboard

import "testing"

func TestEncodedStringsArePrintable(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"plain":                     {map[string]any{"a": "b", "n": 12345678901234567}, `{"a":"b","n":12345678901234567}`},
		"lines and quotes":          {"a\n\t\"b\" \\r <c>", `"a\n\t\"b\" \\r \u003cc\u003e"`},
		"other languages":           {"日本語 é", `"日本語 é"`},
		"colors":                    {Problem{Code: "x", Message: "\x1b[31mred\x1b[0m"}, `{"code":"x","message":"[31mred[0m"}`},
		"a returning cursor":        {[]string{"a\rb\b\f"}, `["ab"]`},
		"deleted":                   {"a\x7fb", `"ab"`},
		"8-bit controls":            {"a\u009bb", `"ab"`},
		"another direction":         {"a\u202eb\u2066c", `"abc"`},
		"in a name":                 {map[string]string{"a\x1b": "b"}, `{"a":"b"}`},
		"a large number beside it":  {map[string]any{"n": 12345678901234567, "s": "\x00"}, `{"n":12345678901234567,"s":""}`},
		"what looks like an escape": {`\u001b \r`, `"\\u001b \\r"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encode(test.value)
			if err != nil || string(got) != test.want {
				t.Errorf("encode = %s, %v; want %s", got, err, test.want)
			}
		})
	}
}
