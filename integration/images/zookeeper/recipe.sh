# shellcheck shell=bash
# Recipe of the ZooKeeper image; read by ../build.sh, which says what the
# functions used here do.

# jdk: the package of the newest Java development kit that is installed.
jdk() {
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'openjdk-*-jdk-headless' 2>/dev/null |
		sed -n 's/^installed //p' | sort -V | tail -n1
}

build_zookeeper() {
	[[ $(jdk) ]] || need default-jdk-headless
	need zookeeper busybox-static
	local release
	release=$(. /etc/os-release && printf '%s%s' "$ID" "$VERSION_ID")
	image LOCKKEEPER_ZOOKEEPER_IMAGE "lockkeeper/zookeeper:$(version zookeeper)-$release" zookeeper \
		"$(jdk)" zookeeper libzookeeper-java libnetty-java libjackson2-databind-java busybox-static libc6
}

fill_zookeeper() {
	local root=$1 jre=$1/opt/java lib=$1/opt/zookeeper/lib package name netty
	local modules=java.base,java.logging,java.management,java.naming,java.security.jgss,java.security.sasl
	modules+=,java.xml,jdk.crypto.ec,jdk.unsupported,jdk.security.auth

	mkdir -p "$root/opt" "$lib" "$root/data" "$root/datalog" "$root/conf"
	"$(from "$(jdk)" '/bin/jlink$')" --add-modules "$modules" --strip-debug --no-header-files \
		--no-man-pages --output "$jre"
	libraries "$root" "$jre/bin/java" "$jre"/lib/*.so "$jre"/lib/server/*.so
	# jlink leaves the class-data archive out, and starts are slower without
	"$jre/bin/java" -Xshare:dump >/dev/null

	while read -r package name; do
		install -m 644 "$(from "$package" "/java/$name\.jar$")" "$lib/$name.jar"
	done <<-'END'
		libzookeeper-java zookeeper
		libzookeeper-java zookeeper-jute
		libslf4j-java slf4j-api
		libslf4j-java slf4j-simple
		libcommons-cli-java commons-cli
		libcommons-io-java commons-io
		libdropwizard-metrics-java metrics-core
		libsnappy-java snappy-java
		libfindbugs-annotations-java findbugs-annotations
		libjackson2-annotations-java jackson-annotations
		libjackson2-core-java jackson-core
		libjackson2-databind-java jackson-databind
	END
	for netty in buffer codec common handler resolver transport transport-native-epoll transport-native-unix-common; do
		install -m 644 "$(from libnetty-java "/java/netty-$netty\.jar$")" "$lib/netty-$netty.jar"
	done
	install -m 755 "$here/zookeeper/entrypoint.sh" "$root/docker-entrypoint.sh"
	changes=(--change 'ENTRYPOINT ["/docker-entrypoint.sh"]' --change 'CMD ["zkServer.sh", "start-foreground"]'
		--change 'ENV PATH=/opt/java/bin:/bin' --change 'EXPOSE 2181 2888 3888' --change 'WORKDIR /')
}
