package dashboard

import _ "embed"

// openAPI describes the API (OpenAPI 3.1). TestGenerated writes it.
//
//go:embed openapi.json
var openAPI []byte
