#!/bin/sh
# Entry point of the locally built ZooKeeper image. It reads the variables which
# the official image's one reads (those that the tests use, with its defaults),
# so that the tests need not know which of the two they run on.
set -eu

conf=/conf/zoo.cfg
if [ ! -f "$conf" ]; then
	{
		echo "dataDir=/data"
		echo "dataLogDir=/datalog"
		echo "tickTime=${ZOO_TICK_TIME:-2000}"
		echo "initLimit=${ZOO_INIT_LIMIT:-5}"
		echo "syncLimit=${ZOO_SYNC_LIMIT:-2}"
		echo "maxClientCnxns=${ZOO_MAX_CLIENT_CNXNS:-60}"
		echo "standaloneEnabled=${ZOO_STANDALONE_ENABLED:-true}"
		# the image has no jetty, so no admin server either
		echo "admin.enableServer=false"
		echo "4lw.commands.whitelist=${ZOO_4LW_COMMANDS_WHITELIST:-srvr}"
		for server in ${ZOO_SERVERS:-server.1=localhost:2888:3888;2181}; do
			echo "$server"
		done
		for extra in ${ZOO_CFG_EXTRA:-}; do
			echo "$extra"
		done
	} >"$conf"
fi
[ -f /data/myid ] || echo "${ZOO_MY_ID:-1}" >/data/myid

# "zkServer.sh start-foreground" is the official image's command; there is no
# such script here. Anything else is run as it is.
[ "${1:-}" = zkServer.sh ] || exec "$@"

# The variables hold several flags each: they have to be split.
# shellcheck disable=SC2086
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xms16m -Xmx256m \
	-Dorg.slf4j.simpleLogger.defaultLogLevel=info -Dorg.slf4j.simpleLogger.showDateTime=true \
	${JVMFLAGS:-} ${SERVER_JVMFLAGS:-} \
	-cp "/opt/zookeeper/lib/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "$conf"
