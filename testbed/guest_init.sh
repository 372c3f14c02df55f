#!/bin/busybox sh
# shellcheck shell=dash
# What a guest of the test bed does first: its root, its network, and then the script $start.
#
# Its variables are words of the kernel's command line, which testbed/guest.py gives. The folders of
# the root are this machine's, as the node's namespaces show them, but for what the guest's own
# kernel makes and for temporary files. No file of the root itself is shown: one may say that this
# machine is a container. /usr is cached: nobody changes it meanwhile.
# shellcheck disable=SC2154
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module.ko"; done </modules/order
share() { mount -t 9p -o "trans=virtio,version=9p2000.L,msize=524288,$3" "$1" "$2"; }
temporary() { mount -t tmpfs -o "mode=$1,nosuid" tmpfs "$2"; }
temporary 755 /root
share root /share cache=none
for path in /share/*; do
    here=/root/${path#/share/}
    if [ -L "$path" ]; then
        ln -s "$(readlink "$path")" "$here"
    elif [ -d "$path" ]; then
        mkdir "$here"
        case ${path#/share/} in
        tmp | usr | proc | sys | dev) ;;
        *) mount --bind "$path" "$here" ;;
        esac
    fi
done
share usr /root/usr cache=loose,ro
for path in proc sys dev; do mount --move /$path /root/$path; done
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts -o mode=620,gid=5,ptmxmode=666 devpts /root/dev/pts
temporary 1777 /root/dev/shm
temporary 1777 /root/tmp
for path in $(echo "$shares" | tr : ' '); do
    mkdir -p "/root$path" && mount --bind "/share$path" "/root$path"
done
temporary 755 "/root$munge"
temporary 755 "/root$spool"
hostname "$node"
ip link set lo up
ip link set eth0 mtu "$mtu" up
ip addr add "$address/32" dev eth0
ip route add "$gateway" dev eth0 scope link
ip route add default via "$gateway" dev eth0 src "$address"
exec switch_root /root /bin/sh "$start"
