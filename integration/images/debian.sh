# shellcheck shell=bash
# Functions about Debian packages, for scripts to read.

# installed PACKAGE: is it there, configured?
installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# need PACKAGE...: installs those that are missing; only root can.
need() {
	local missing=() p
	for p; do installed "$p" || missing+=("$p"); done
	((${#missing[@]})) || return 0
	if ((EUID != 0)); then
		echo "Debian packages missing: ${missing[*]} (run as root to have them installed)" >&2
		return 1
	fi
	echo "installing ${missing[*]}" >&2
	{
		apt-get -q update
		DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}"
	} >&2
}
