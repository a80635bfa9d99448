# shellcheck shell=bash
# Recipe of the Redis image; read by ../build.sh, which says what the functions
# used here do. Sentinel is the same program, started with --sentinel.

build_redis() {
	# Not redis-server: that would have Debian start a server. The program itself
	# is in redis-tools, where it goes by another of its names.
	need redis-tools busybox-static
	local release
	release=$(. /etc/os-release && printf '%s%s' "$ID" "$VERSION_ID")
	image LOCKKEEPER_REDIS_IMAGE "lockkeeper/redis:$(version redis-tools)-$release" redis \
		redis-tools busybox-static libc6
}

fill_redis() {
	local root=$1 bin=$1/usr/local/bin
	mkdir -p "$bin" "$root/data"
	install -m 755 "$(from redis-tools '/bin/redis-check-rdb$')" "$bin/redis-server"
	install -m 755 "$(from redis-tools '/bin/redis-cli$')" "$bin/redis-cli"
	libraries "$root" "$bin"/*
	changes=(--change 'CMD ["redis-server"]' --change 'ENV PATH=/usr/local/bin:/bin'
		--change 'EXPOSE 6379' --change 'WORKDIR /data')
}
