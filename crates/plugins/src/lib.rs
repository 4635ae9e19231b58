//! Every CNI reference plugin in one small program.
