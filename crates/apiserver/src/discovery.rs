//! Discovery documents, classic and aggregated.
