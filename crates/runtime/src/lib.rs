//! Run CNI networks: load, add, check, delete, status, garbage-collect; crash-safe and locked.
