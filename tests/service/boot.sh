#!/bin/bash
# Boots a real systemd as PID 1 of its own namespaces, over a throw-away overlay of this machine's /.
#
#   boot.sh hold FOLDER   in a mount namespace of its own: one boot for each line on standard input.
#                         What a boot changes is there at the next one, and gone when this ends.
#   boot.sh init FOLDER   one boot, in new namespaces; becomes PID 1
#
# FOLDER/cgroups: own child cgroups, one a line. FOLDER/binds: "SOURCE TARGET", shown read-only.
set -eu
folder=$2
root=$folder/root

hold() {
    mount -t tmpfs -o mode=755 box "$folder/memory"
    mkdir -p "$folder/memory/upper" "$folder/memory/work"
    mount -t overlay -o "lowerdir=/,upperdir=$folder/memory/upper,workdir=$folder/memory/work" overlay "$root"
    # Units of the machine have nothing to do here, and its user of edgert is not ours.
    find "$root/etc/systemd/system" -name '*.wants' -prune -exec rm -rf {} +
    rm -rf "$root/etc/edgert" "$root/opt/edgert" "$root/var/lib/edgert" "$root/var/cache/edgert"
    : >"$root/etc/machine-id"
    while read -r cgroup; do echo $$ >"$cgroup/cgroup.procs"; done <"$folder/cgroups"
    while read -r _; do
        unshare --fork --kill-child=KILL --pid --mount --uts --ipc --net --cgroup --propagation private \
            "$0" init "$folder" || true
        echo "ended"
    done
}

cgroup_mounts() { # the hierarchies as the machine has them, seen from the child cgroups
    local at=$root/sys/fs/cgroup
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        mount -t cgroup2 cgroup "$at"
        return
    fi
    mount -t tmpfs -o mode=755 cgroup "$at"
    while IFS=: read -r _ controllers _; do
        case $controllers in
        '') mkdir "$at/unified" && mount -t cgroup2 cgroup "$at/unified" ;;
        name=*) mkdir "$at/${controllers#name=}" &&
            mount -t cgroup -o "none,$controllers" cgroup "$at/${controllers#name=}" ;;
        *) mkdir "$at/$controllers" && mount -t cgroup -o "$controllers" cgroup "$at/$controllers" ;;
        esac
    done </proc/self/cgroup
}

devices() {
    local at=$root/dev node
    mount -t tmpfs -o mode=755 dev "$at"
    mkdir "$at/pts" "$at/shm" "$at/mqueue"
    for node in null zero full random urandom tty; do
        touch "$at/$node"
        mount --bind "/dev/$node" "$at/$node"
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$at/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev shm "$at/shm"
    ln -s pts/ptmx "$at/ptmx"
    ln -s /proc/self/fd "$at/fd"
    ln -s fd/0 "$at/stdin" && ln -s fd/1 "$at/stdout" && ln -s fd/2 "$at/stderr"
}

masks() { # what a box without hardware of its own cannot do
    local unit
    mkdir -p "$root/run/systemd/system"
    for unit in systemd-{sysctl,modules-load,udevd,udev-trigger,binfmt,logind,remount-fs}.service \
        systemd-journald-audit.socket sys-kernel-{debug,tracing,config}.mount \
        sys-fs-fuse-connections.mount dev-hugepages.mount dbus.{service,socket} proc-sys-fs-binfmt_misc.automount; do
        ln -s /dev/null "$root/run/systemd/system/$unit"
    done
}

init() {
    local source target folder_of
    mount -t proc proc "$root/proc"
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,ro,bind "$root/proc/sys" # else it would set this machine's
    mount -t sysfs -o ro sysfs "$root/sys"
    cgroup_mounts
    for folder_of in run tmp var/tmp; do mount -t tmpfs -o mode=1777 tmp "$root/$folder_of"; done
    chmod 755 "$root/run"
    devices
    while read -r source target; do
        mkdir -p "$root$target"
        mount --bind "$source" "$root$target"
        mount -o remount,ro,bind "$root$target"
    done <"$folder/binds"
    masks
    hostname edgert-box
    cd "$root"
    mkdir -p mnt/old
    pivot_root . mnt/old
    umount -l /mnt/old
    exec env -i container=edgert-box PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        /lib/systemd/systemd --unit=multi-user.target --log-target=journal --log-level=info
}

"$1"
