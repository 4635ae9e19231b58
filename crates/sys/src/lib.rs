//! Linux for container networking: namespaces, locks, atomic files, sysctl, child processes.
