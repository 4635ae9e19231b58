//! System tests on real namespaces: see the files in `tests/`.
