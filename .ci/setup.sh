#!/usr/bin/env bash
# Installs what is missing and nothing else: Debian packages, then the virtual environments.
#   setup.sh build   what building and the demo need
#   setup.sh all     also what the tests need
# MUSTER_NO_APT=1    no apt: only says which packages are missing
# MUSTER_PIP_ARGS    options for every pip install, e.g. an index with CPU-only wheels of torch
source "$(dirname "$0")/lib.sh"

profile=${1:-all}
lists=(.ci/packages-build.txt)
if [ "$profile" = all ]; then lists+=(.ci/packages-test.txt); fi

missing_packages() {
  local wanted
  wanted=$(sed 's/#.*//' "${lists[@]}" | tr -s ' \n' '\n' | sed '/^$/d' | sort -u)
  # A package that dpkg does not know prints nothing, one that was removed prints another state.
  comm -23 <(printf '%s\n' "$wanted") \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null |
      sed -n 's/ installed$//p' | sort -u)
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

install_packages() {
  local missing=("$@") plan megabytes
  if [ "${MUSTER_NO_APT:-}" = 1 ]; then
    say "MUSTER_NO_APT=1, so these Debian packages stay missing: ${missing[*]}"
    return
  fi
  command -v apt-get >/dev/null || fail "this is not a Debian system: no apt-get" \
    "install the equivalents of ${missing[*]}, then run with MUSTER_NO_APT=1"
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    fail "installing packages needs root or sudo" \
      "as root: apt-get install --no-install-recommends ${missing[*]}  (or MUSTER_NO_APT=1)"
  fi
  say "setup: ${#missing[@]} Debian packages are missing: ${missing[*]}"
  as_root apt-get update -qq
  plan=$(LC_ALL=C apt-get install --no-install-recommends --assume-no "${missing[@]}" 2>&1 || true)
  megabytes=$(sed -n 's/^Need to get \([0-9.,]*\) MB.*/\1/p' <<<"$plan" | tr -d , | head -1 | cut -d. -f1)
  say "setup: installing them, ${megabytes:-a few} MB to fetch, about $(((${megabytes:-30} / 100) + 1)) min"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${missing[@]}" >.apt.log 2>&1 || {
    cat .apt.log >&2
    fail "apt could not install the packages" "the log above says why; nothing else was changed"
  }
  rm -f .apt.log
}

started=$SECONDS
mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi
command -v python3 >/dev/null || fail "python3 is missing" "install python3 and python3-venv"
python3 .ci/venvs.py "$profile"
if [ $((SECONDS - started)) -gt 2 ]; then say "setup: done in $((SECONDS - started)) s"; fi
