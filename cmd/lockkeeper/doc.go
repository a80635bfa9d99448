// Command lockkeeper holds ZooKeeper locks for shell scripts and people.
//
//	lockkeeper holds a ZooKeeper lock, or leads, while a command runs, and shows who
//	is in line. Of the locks, run can also have one on Redis.
//
//	Usage:
//
//	    lockkeeper run [flags] PATH -- COMMAND [ARG…]     hold the lock at PATH while COMMAND runs
//	    lockkeeper elect [flags] PATH -- COMMAND [ARG…]   run COMMAND while elected at PATH
//	    lockkeeper leader [flags] PATH                    say who leads at PATH
//	    lockkeeper show [flags] PATH                      say who holds the lock at PATH, and who waits
//	    lockkeeper demo                                   watch a lock being passed on, and lost
//	    lockkeeper dev [flags]                            run a ZooKeeper server for development
//	    lockkeeper version                                print the version
//	    lockkeeper help [TOPIC]                           more about a subcommand, or exit-codes
//
//	----------------------------------------------------------------
//	Usage: lockkeeper run [flags] PATH -- COMMAND [ARG…]
//
//	Flags:
//
//	  -auth scheme:credentials
//	        identity to present, as scheme:credentials; may be repeated. Arguments can
//	        be seen by other users: $LOCKKEEPER_AUTH, one identity a line, is safer
//	  -by-hold-time
//	        flows share the time for which the lock is held, rather than the number of turns
//	  -chroot path
//	        take every path below this one; made if missing (default: none)
//	  -connect-timeout duration
//	        give up if there is no session after this duration; 0: never (default 30s)
//	  -flow name
//	        be one of the flow with this name: flows share the lock, whoever has more
//	        requests
//	  -grace duration
//	        duration that the command has to end by itself when the lock is being lost;
//	        at most a third of the session timeout (default 2s, or a fifth of the
//	        session timeout or of -max-hold if that is less)
//	  -lock-delay duration
//	        if we die or lose the lock, keep it closed to others for this duration,
//	        1ms to 24h (default: none)
//	  -max-hold duration
//	        end the command when it has held the lock for this duration
//	        (default: no limit)
//	  -owner name
//	        name shown to others that look at the lock, 1 to 256 bytes
//	        (default host/pid)
//	  -permits number
//	        take a semaphore with this number of permits, which is the same for all:
//	        so many hold it at a time
//	  -redis URL
//	        hold the lock on Redis, at this URL, instead of ZooKeeper: see below.
//	        Arguments can be seen by other users: $LOCKKEEPER_REDIS is safer where there is
//	        a password
//	  -rw side
//	        take a side, read or write, of a read/write lock: readers share it, a
//	        writer has it alone
//	  -servers host:port,…
//	        members of the ensemble: host:port,…; port 2181 where left out
//	        (required, here or in $LOCKKEEPER_SERVERS)
//	  -shared
//	        hold the lock together with others that give -shared: short for -rw read
//	  -take number
//	        take this number of the permits, all at once (default 1)
//	  -timeout duration
//	        ask for a session timeout of this duration; servers grant 2 to 20 of their
//	        ticks unless they were told otherwise (default 10s)
//	  -tls
//	        use TLS; implied by the flags that follow
//	  -tls-ca file
//	        PEM file of the authorities to trust (default: the system's)
//	  -tls-cert file
//	        PEM file of our certificate
//	  -tls-key file
//	        PEM file of its key
//	  -tls-server-name name
//	        name to expect in the servers' certificates (default: the host in -servers)
//	  -try
//	        do not wait for the lock
//	  -v
//	        say on stderr what happens
//	  -wait duration
//	        give up if the lock is not had after this duration, counted from the start
//	        (default: wait for ever)
//	  -weight number
//	        the flow's share of the lock is in proportion to this number (default 1)
//
//	run waits for the lock at PATH, runs COMMAND while it holds it, and gives it up
//	when COMMAND has ended. Without --, the first argument that is no flag is PATH.
//	COMMAND has our standard input, output and error, and our environment (with
//	LOCKKEEPER_AUTH and LOCKKEEPER_REDIS in it, if set) and
//
//	    LOCKKEEPER_PATH     PATH
//	    LOCKKEEPER_TOKEN    the fencing token, in decimal: larger for every later grant
//	    LOCKKEEPER_OWNER    the name that others see
//	    LOCKKEEPER_SLOT     with -permits N, a number from 0 to N-1 that no other holder
//	                        has; with -take, the lowest of those
//	    LOCKKEEPER_SLOTS    all of them, with commas between
//	    LOCKKEEPER_FLOW     with -flow, the flow's name
//
//	Kinds of lock. While it is used, a path is of one kind. Without further flags it is a
//	mutex: one holds it at a time. With -shared (or -rw read) or -rw write it is a read/write
//	lock: those with -shared hold it together, one with -rw write holds it alone. With
//	-permits N it is a semaphore: N permits are there, of which each takes one or as
//	many as -take says. All kinds are had in order of arrival. Whoever comes with flags
//	of another kind, or with another N, is told so, with exit code 118.
//
//	Flows. With -flow NAME, a mutex is shared between flows (tenants, users, kinds of job)
//	and not between requests: it goes round the flows that want it, so that one with a
//	thousand requests does not make all others wait behind them. Each gets turns in
//	proportion to its -weight; within a flow it is first come, first served. With
//	-by-hold-time it is the time of holding that is shared. All who use PATH should have
//	a flow: those without one are served as they come. The newest request's weight counts
//	for its flow. -try finds the lock busy also where others of the flow wait for it.
//
//	Redis. With -redis URL, or LOCKKEEPER_REDIS in the environment and no -servers, the
//	lock is on Redis, and PATH is its key: 1 to 1024 bytes, with or without a slash. The URL:
//
//	    redis://[USER:PASSWORD@]HOST[:PORT][/DB]     one server; port 6379 where left out
//	    redis://[USER:PASSWORD@]HOST[:PORT],HOST…    some servers of a Cluster
//	    rediss://…                                   the same with TLS; SSL_CERT_FILE names
//	                                                 a file of other authorities to trust
//	    unix://[USER:PASSWORD@]/SOCKET[?db=DB]       a socket
//
//	Special characters in USER and PASSWORD are written as %XX. Options such as
//	?dial_timeout=2s are those of go-redis. -timeout is the lock's time to live (100ms to
//	24h), and the grace goes by that. Flows and the flags of ZooKeeper are refused. A lock
//	on Redis is weaker: a failover, an eviction or whoever deletes the key may give it to
//	another while COMMAND runs, which ends up to a third of -timeout later: use the token.
//
//	Loss. When no news comes from the servers, trust in the lock ends before they
//	can give it to another. When -grace is left of it, COMMAND gets
//	SIGTERM; a little before its end, SIGKILL. It has to end even if news come again
//	in between. When the lock is taken away outright (its node or key was deleted, the
//	session was expired), another may hold it: SIGKILL at once. With -grace 0 there
//	is SIGKILL only. The signals go to the process group that COMMAND started with,
//	not to those that left it (setsid, shells with job control).
//
//	The end. COMMAND's first process decides: what it leaves running in the background
//	is left alone, and runs on without the lock. After a loss, all of its
//	group are waited for, and killed when trust is over.
//
//	Signals. INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to the group, except
//	those that were ignored when we were started. While we wait for the lock they end
//	the wait, and nothing is left behind. If we are killed ourselves, Linux kills
//	COMMAND's first process, but not its children; elsewhere COMMAND runs on. If we
//	are stopped, nobody watches: the token is what protects the resource then.
//
//	Terminal. If we are in the foreground of one, COMMAND is put there instead, so it
//	can read it and gets Ctrl-C itself. Ctrl-Z has no effect on Linux; elsewhere it stops
//	COMMAND while the lock stays held: continue it with kill -CONT.
//
//	Windows. COMMAND gets Ctrl-Break where it says SIGTERM or signal here, and runs in
//	a job that is terminated where it says SIGKILL. The job ends with us: nothing of
//	it runs on.
//
//	Exit codes:
//
//	code    meaning
//	0-255   of run and elect: the command's own exit code, when it ended by itself
//	1       the demo's check failed, or the dev server could not start
//	116     the lock was not had: busy (-try), or the wait was over (-wait);
//	        the command was not started; of leader: nobody leads
//	117     the lock was lost: the command was told to end, or killed; of elect, with
//	        -once: so was the term
//	118     the ensemble, or Redis, could not be reached, or it refused; of show: PATH is
//	        no lock
//	119     bad input: nothing was sent
//	126     the command was found but could not be started
//	127     the command was not found: nothing was sent
//	128+n   signal n ended the command, the wait for the lock, elect, leader or show
//
//	----------------------------------------------------------------
//	Usage: lockkeeper elect [flags] PATH -- COMMAND [ARG…]
//
//	Flags:
//
//	  -auth scheme:credentials
//	        identity to present, as scheme:credentials; may be repeated. Arguments can
//	        be seen by other users: $LOCKKEEPER_AUTH, one identity a line, is safer
//	  -chroot path
//	        take every path below this one; made if missing (default: none)
//	  -connect-timeout duration
//	        give up if there is no session after this duration; 0: never (default 30s)
//	  -grace duration
//	        duration that the command has to end by itself when the term is being lost;
//	        at most a third of the session timeout (default 2s, or a fifth of the
//	        session timeout or of -max-hold if that is less)
//	  -lock-delay duration
//	        if we die or lose the term, keep it closed to others for this duration,
//	        1ms to 24h (default: none)
//	  -max-hold duration
//	        end the command when it has held the term for this duration
//	        (default: no limit)
//	  -once
//	        one term only: exit, too, when the term was lost
//	  -owner name
//	        name shown to others that look at the term, 1 to 256 bytes
//	        (default host/pid)
//	  -servers host:port,…
//	        members of the ensemble: host:port,…; port 2181 where left out
//	        (required, here or in $LOCKKEEPER_SERVERS)
//	  -timeout duration
//	        ask for a session timeout of this duration; servers grant 2 to 20 of their
//	        ticks unless they were told otherwise (default 10s)
//	  -tls
//	        use TLS; implied by the flags that follow
//	  -tls-ca file
//	        PEM file of the authorities to trust (default: the system's)
//	  -tls-cert file
//	        PEM file of our certificate
//	  -tls-key file
//	        PEM file of its key
//	  -tls-server-name name
//	        name to expect in the servers' certificates (default: the host in -servers)
//	  -v
//	        say on stderr what happens
//	  -value text
//	        text to publish while elected; it may be empty (default: the owner)
//
//	elect is a candidate in the election at PATH, runs COMMAND while it is elected, and
//	shows a value, such as an address, to all who ask who leads: see lockkeeper leader.
//	Candidates are elected in order of arrival. COMMAND has what run gives it, and
//	LOCKKEEPER_PATH, LOCKKEEPER_TOKEN and LOCKKEEPER_OWNER.
//
//	Loss. When the term is being lost, or -max-hold is over, COMMAND is ended as run
//	ends it, before another can be elected. Then we are a candidate again, at the
//	tail, and COMMAND runs again when we are elected again. With -once that is the
//	end: exit code 117.
//
//	The end. When COMMAND ends by itself, whatever its exit code, we resign and exit
//	with that. Whoever wants it started again runs lockkeeper in a loop, so that
//	others come first.
//
//	Signals. INT, TERM and QUIT end us: they are passed on to COMMAND, and when it has
//	ended, in its own time, we resign and exit with 128+n. HUP, USR1 and USR2 are
//	passed on and change nothing else. While there is no COMMAND, HUP ends us, too, and
//	USR1 and USR2 do nothing. Whoever ends us while we are a candidate leaves nothing
//	behind. The rest, and what is said of terminals and Windows, is as with run.
//
//	Exit codes: see lockkeeper help exit-codes.
//
//	----------------------------------------------------------------
//	Usage: lockkeeper leader [flags] PATH
//
//	Flags:
//
//	  -auth scheme:credentials
//	        identity to present, as scheme:credentials; may be repeated. Arguments can
//	        be seen by other users: $LOCKKEEPER_AUTH, one identity a line, is safer
//	  -chroot path
//	        take every path below this one; made if missing (default: none)
//	  -connect-timeout duration
//	        give up if there is no session after this duration; 0: never (default 30s)
//	  -servers host:port,…
//	        members of the ensemble: host:port,…; port 2181 where left out
//	        (required, here or in $LOCKKEEPER_SERVERS)
//	  -timeout duration
//	        ask for a session timeout of this duration; servers grant 2 to 20 of their
//	        ticks unless they were told otherwise (default 10s)
//	  -tls
//	        use TLS; implied by the flags that follow
//	  -tls-ca file
//	        PEM file of the authorities to trust (default: the system's)
//	  -tls-cert file
//	        PEM file of our certificate
//	  -tls-key file
//	        PEM file of its key
//	  -tls-server-name name
//	        name to expect in the servers' certificates (default: the host in -servers)
//	  -v
//	        say on stderr what happens
//	  -watch
//	        go on, and say what changes
//
//	leader says who leads at PATH, as elected by lockkeeper elect or the library:
//
//	    token=4294967299 since=2026-03-01T09:30:00Z owner=web1/4711 value=10.0.0.1:80
//
//	Owner and value are quoted where they have spaces, quotes or control characters. If
//	nobody leads, the exit code is 116. With -watch it says so at once and after each
//	change, in a line of its own, and "vacant" while nobody leads; what came and went
//	in between may be left out.
//
//	It is true of one moment: to decide whether to write, use the token.
//
//	----------------------------------------------------------------
//	Usage: lockkeeper show [flags] PATH
//
//	Flags:
//
//	  -auth scheme:credentials
//	        identity to present, as scheme:credentials; may be repeated. Arguments can
//	        be seen by other users: $LOCKKEEPER_AUTH, one identity a line, is safer
//	  -chroot path
//	        take every path below this one; made if missing (default: none)
//	  -connect-timeout duration
//	        give up if there is no session after this duration; 0: never (default 30s)
//	  -json
//	        print JSON, for programs
//	  -servers host:port,…
//	        members of the ensemble: host:port,…; port 2181 where left out
//	        (required, here or in $LOCKKEEPER_SERVERS)
//	  -timeout duration
//	        ask for a session timeout of this duration; servers grant 2 to 20 of their
//	        ticks unless they were told otherwise (default 10s)
//	  -tls
//	        use TLS; implied by the flags that follow
//	  -tls-ca file
//	        PEM file of the authorities to trust (default: the system's)
//	  -tls-cert file
//	        PEM file of our certificate
//	  -tls-key file
//	        PEM file of its key
//	  -tls-server-name name
//	        name to expect in the servers' certificates (default: the host in -servers)
//	  -v
//	        say on stderr what happens
//	  -watch
//	        go on, and show what changes
//
//	show says who holds the lock at PATH and who waits for it, holders first, then in the
//	order of the queue. It finds out itself what kind of lock it is: a mutex, a fair lock
//	(with those who wait in the queues of their flows), a read/write lock, a semaphore, an
//	election. It only reads: those in line don't notice.
//
//	    /locks/orders at 2026-03-01T09:30:10Z: fair, 1 holds, 2 wait
//	    PLACE  STATE    FLOW      OWNER      TOKEN       SINCE                 AGE
//	    0      holding  tenant-a  web1/4711  4294967299  2026-03-01T09:30:00Z  10s
//	    1      waiting  tenant-b  web2/815   4294967311  2026-03-01T09:30:05Z  5.2s
//	    2      waiting  tenant-a  web1/4712  4294967305  2026-03-01T09:30:02Z  8.1s
//
//	A read/write lock has a column KIND, a semaphore PERMITS (asked for) and SLOTS (had).
//	SINCE is when somebody queued, by the server's clock; AGE is how long ago that is, the
//	time of holding included. The server tells nobody the time, so AGE is counted by our
//	clock: it is wrong by as much as that is ahead of the server's. Owners and flows are
//	quoted where they have spaces, quotes or control characters, and cut where they are
//	long. Where nobody is in line, or nothing is at PATH, that is said, with exit code 0; a
//	path that is no lock is refused, with exit code 118.
//
//	With -watch it says so again after each change, twice a second at most, with an empty
//	line between; what came and went in between may be left out. On a terminal it draws
//	the table anew in its place. It goes on over lost connections until it is interrupted.
//
//	With -json it prints one object in one line; with -watch, one for each change:
//
//	    path        PATH
//	    recipe      mutex, fair, rwlock, semaphore or election; left out where nobody has
//	                used PATH yet
//	    size        of a semaphore
//	    time        when it was so, by the server's clock as far as it is known
//	    contenders  a list, in the order of the table, of objects with
//	        place     0 for those who hold, from 1 for those who wait
//	        holding   true or false
//	        owner     as given with -owner
//	        flow      of a fair lock
//	        kind      lock, read, write, lease or candidate
//	        token     the fencing token that it has, or will have: a number of up to 64 bits
//	        permits   of a semaphore: how many it asks for
//	        slots     of a semaphore: a list of those that it has
//	        since     when it queued, by the server's clock
//	        id        the name of its node
//	        age_ms    how long ago since is, in milliseconds
//
//	Times are as in RFC 3339. What does not apply is left out. It is true of one moment: to
//	decide whether to write, use the token.
//
//	----------------------------------------------------------------
//	Usage: lockkeeper demo
//
//	demo needs no server: it starts one inside this process. Three workers take turns
//	at one lock. In one turn the server ends the holder's session, in another the
//	holder's network goes down; both holders are told, and the lock goes on to the
//	next. In the end it checks that tokens rose and that no two grants overlapped;
//	the exit code is 1 if not.
//
//	----------------------------------------------------------------
//	Usage: lockkeeper dev [flags]
//
//	Flags:
//
//	  -addr host:port
//	        host:port to listen on; port 0 takes a free one (default "127.0.0.1:2181")
//	  -tick duration
//	        a tick is this duration; sessions last 2 to 20 ticks (default 2s)
//	  -v
//	        log sessions and connections to stderr
//
//	dev runs a ZooKeeper server inside this process, for development: one node, in
//	memory, nothing is kept; not for production. Any ZooKeeper client can connect to
//	it. It runs until it is interrupted.
package main
