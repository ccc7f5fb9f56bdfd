//! OpenAPI v3 documents, enough for kubectl.
