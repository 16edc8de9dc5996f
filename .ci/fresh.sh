#!/usr/bin/env bash
# fresh.sh FOLDER [COMMAND]: a minimal Debian 12 with nothing but git and make in FOLDER, a clone of HEAD in it, and COMMAND (make demo)
# run there. It shows that the package lists are complete. Needs root and debootstrap; takes its mirror, pip settings and certificates from this machine.
source "$(dirname "$0")/lib.sh"
[ $# -ge 1 ] || fail "usage: fresh.sh FOLDER [COMMAND]"
place=$1 command=${2:-make demo}
[ "$(id -u)" = 0 ] || fail "a chroot needs root"
command -v debootstrap >/dev/null || fail "debootstrap is missing" "apt-get install debootstrap"

mounted=()
leave() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount -l "${mounted[i]}"; done
}
trap leave EXIT
bind() {
  mkdir -p "$place/$1"
  mount --bind "/$1" "$place/$1"
  mounted+=("$place/$1")
}

mirror=$(sed -nE 's/^(URIs: |deb )(\[[^]]*\] )?([a-z]+:[^ ]*debian\/?).*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1 || true)
[ -n "$mirror" ] || fail "no Debian mirror in this machine's apt sources"
if [ ! -e "$place/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$place" "$mirror" >&2
fi
for folder in proc dev sys; do bind "$folder"; done
cp /etc/resolv.conf "$place/etc/"
cp -r /etc/ssl/certs "$place/etc/ssl/"
for settings in etc/pip.conf etc/xdg/pip opt; do
  if [ -d "/$settings" ]; then bind "$settings"; elif [ -e "/$settings" ]; then cp "/$settings" "$place/$settings"; fi
done
rm -rf "$place/clone" && git clone -q --no-hardlinks . "$place/clone"

mapfile -t pip_settings < <(env | grep '^PIP_' || true)
say "fresh: $(chroot "$place" dpkg-query -W | wc -l) packages; running: $command"
started=$SECONDS
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home TERM=dumb "${pip_settings[@]}" \
  chroot "$place" bash -c "cd /clone && $command"
say "fresh: '$command' worked after $(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s"
