package dashboard

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"opendatahub.io/mpijob/internal/phrase"
)

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := encode(value)
	if err != nil {
		slog.Error("response cannot be encoded", "error", err)
		status, data = http.StatusInternalServerError, []byte(`{"code":"Internal","message":"the dashboard failed to answer this request; its log has the details"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

// encode returns a value as JSON. Its strings are printable: names, messages and annotations are written by users and by
// programs, and pages show them, copy them to terminals and save them as files.
func encode(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil || isPrintable(data) {
		return data, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	return json.Marshal(printable(decoded))
}

// printable returns a JSON value whose strings are printable.
func printable(value any) any {
	switch value := value.(type) {
	case string:
		return phrase.Printable(value)
	case []any:
		for i, each := range value {
			value[i] = printable(each)
		}
	case map[string]any:
		clean := make(map[string]any, len(value))
		for name, each := range value {
			clean[phrase.Printable(name)] = printable(each)
		}
		return clean
	}
	return value
}

// isPrintable reports whether all strings in JSON are printable. It reads the JSON as bytes, because nearly all of it is.
func isPrintable(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\\':
			i++
			if rest := data[i:]; rest[0] == 'r' || rest[0] == 'b' || rest[0] == 'f' || rest[0] == 'u' && rest[1] == '0' && rest[2] == '0' && rest[3] < '2' {
				return false
			}
		case b >= 0x7f:
			r, size := utf8.DecodeRune(data[i:])
			if text := string(r); phrase.Printable(text) != text {
				return false
			}
			i += size - 1
		}
	}
	return true
}
