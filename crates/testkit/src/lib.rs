//! Private namespaces, fake plugins and probes for Podwire's own tests.
