#!/usr/bin/env bash
# Builds the server images of the integration tests from the Debian packages of
# this machine, for places where no registry can be reached: a root directory
# with nothing but what the server needs, given to "docker import".
#
#   images/build.sh            build what is missing, print the images' names
#   images/build.sh zookeeper  only that one
#
# An image is built anew only if its ingredients (packages, scripts) changed.
# Names of the images go to stdout, one "NAME=image" per line, NAME being the
# variable by which the tests find it; everything else goes to stderr.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf 'images: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# shellcheck source=debian.sh
source "$here/debian.sh"

# version PACKAGE: upstream version, without epoch and Debian revision.
version() { dpkg-query -W -f '${source:Upstream-Version}' "$1"; }

# from PACKAGE REGEX: the one file of a package whose path matches. The list is read
# to its end: a dpkg that is hung up on would count as having failed.
from() {
	local f
	f=$(dpkg -L "$1" | grep -E -- "$2" | sed -n 1p) || die "package $1 has no file matching $2"
	printf '%s\n' "$f"
}

# libraries ROOT FILE...: copies the shared libraries which the files need. Only
# absolute paths: those that ldd can't find (libjvm.so) come with the runtime.
libraries() {
	local root=$1
	shift
	ldd "$@" 2>/dev/null | grep -oE '/[^ :)]+\.so[^ :)]*' | sort -u | while read -r lib; do
		case $lib in "$root"/*) continue ;; esac
		install -D "$lib" "$root$lib"
	done
}

# base ROOT: what every image has: a shell, name resolution, users, /tmp.
base() {
	local root=$1 bin lib cmd
	mkdir -p "$root"/{bin,etc,tmp,proc,sys,dev,root,var/run}
	chmod 1777 "$root/tmp"
	bin=$(from busybox-static '/bin/busybox$')
	install "$bin" "$root/bin/busybox"
	for cmd in $("$bin" --list); do
		[[ $cmd == busybox ]] || ln -s busybox "$root/bin/$cmd"
	done
	# loaded by name at run time, so that ldd does not show them
	for lib in libnss_dns libnss_files libresolv; do
		from libc6 "/$lib\.so\.2$" | while read -r f; do install -D "$f" "$root$f"; done
	done
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
}

# image VARIABLE NAME FOLDER PACKAGE...: builds NAME by the function fill_FOLDER unless one with the
# same ingredients is there.
image() {
	local variable=$1 name=$2 folder=$3 want have root
	shift 3
	want=$({
		dpkg-query -W -f '${Package} ${Version}\n' "$@"
		cat "${BASH_SOURCE[0]}" "$here/$folder"/*
	} | sha256sum | cut -c1-16)
	have=$(docker image inspect -f '{{index .Config.Labels "lockkeeper.ingredients"}}' "$name" 2>/dev/null || true)
	if [[ $have != "$want" ]]; then
		say "building $name"
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		root=$work/root
		mkdir "$root"
		base "$root"
		local changes=()
		"fill_$folder" "$root"
		tar -C "$root" --owner=0 --group=0 -c . | docker import "${changes[@]}" \
			--change "LABEL lockkeeper.ingredients=$want" - "$name" >/dev/null
		rm -rf "$work"
	fi
	printf '%s=%s\n' "$variable" "$name"
}

for recipe in "$here"/*/recipe.sh; do
	folder=$(basename "$(dirname "$recipe")")
	(($# == 0)) || [[ " $* " == *" $folder "* ]] || continue
	# shellcheck source=/dev/null
	source "$recipe"
	"build_$folder"
done
