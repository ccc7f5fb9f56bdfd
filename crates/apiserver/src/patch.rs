//! The three patch forms besides server-side apply: JSON patch, merge patch, strategic merge patch.
