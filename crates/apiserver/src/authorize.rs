//! RBAC: who may do what, and which rule said so.
