//! Write a CNI plugin: entry point, gates, delegation, undo, and the inventory engine.
