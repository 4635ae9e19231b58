#!/bin/sh
# The guest's first process: mounts what a machine has mounted, then lets the
# developer commands of the checkout run the tests. The last line switches off.
export PATH=/usr/sbin:/usr/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /sys/fs/cgroup
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd
# Only panics may write between the lines that the host reads.
echo 1 > /proc/sys/kernel/printk
ip link set lo up
# A node has these at boot: nobody asks the kernel for br_netfilter, and the
# device file of tun is there before its module. The rest loads by itself.
modprobe -a br_netfilter tun
/vmtest/xtask vmtest --inside
echo "@vm dmesg"
dmesg -r | grep '^<[0-3]>'
poweroff -f
