//! Kernel objects that CNI plugins put on a host, each made, checked, removed and collected the same way.
