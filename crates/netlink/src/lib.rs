//! Netlink for container networking: links, addresses, routes, qdiscs, nftables and conntrack, without child processes.
