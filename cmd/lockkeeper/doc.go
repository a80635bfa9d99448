// Command lockkeeper holds ZooKeeper locks for shell scripts and people.
//
//	lockkeeper holds a ZooKeeper lock while a command runs.
//
//	Usage:
//
//	    lockkeeper run [flags] PATH -- COMMAND [ARG…]   hold the lock at PATH while COMMAND runs
//	    lockkeeper demo                                 watch a lock being passed on, and lost
//	    lockkeeper dev [flags]                          run a ZooKeeper server for development
//	    lockkeeper version                              print the version
//	    lockkeeper help [TOPIC]                         more about a subcommand, or exit-codes
//
//	----------------------------------------------------------------
//	Usage: lockkeeper run [flags] PATH -- COMMAND [ARG…]
//
//	Flags:
//
//	  -auth scheme:credentials
//	        identity to present, as scheme:credentials; may be repeated. Arguments can
//	        be seen by other users: $LOCKKEEPER_AUTH, one identity a line, is safer
//	  -chroot path
//	        take every path below this one; made if missing
//	  -connect-timeout duration
//	        give up if there is no session after this time; 0: never (default 30s)
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
//	        name shown to others that look at the lock (default host/pid)
//	  -servers host:port,…
//	        members of the ensemble: host:port,…; port 2181 where left out
//	        (required, here or in $LOCKKEEPER_SERVERS)
//	  -timeout duration
//	        session timeout to ask for (default 10s)
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
//
//	run waits for the lock at PATH, runs COMMAND while it holds it, and gives it up
//	when COMMAND has ended. Without --, the first argument that is no flag is PATH.
//	COMMAND has our standard input, output and error, and our environment (with
//	LOCKKEEPER_AUTH in it, if set) and
//
//	    LOCKKEEPER_PATH     PATH
//	    LOCKKEEPER_TOKEN    the fencing token, in decimal: larger for every later grant
//	    LOCKKEEPER_OWNER    the name that others see
//
//	Loss. When no news comes from the ensemble, trust in the session ends before the
//	ensemble can give the lock to another. When -grace is left of it, COMMAND gets
//	SIGTERM; a little before its end, SIGKILL. It has to end even if news come again
//	in between. When the lock is taken away outright (its node was deleted, the
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
//	0-255   of run: the command's own exit code, when it ended by itself
//	1       the demo's check failed, or the dev server could not start
//	116     the lock was not had: busy (-try), or the wait was over (-wait);
//	        the command was not started
//	117     the lock was lost: the command was told to end, or killed
//	118     the ensemble could not be reached, or it refused
//	119     bad input: nothing was sent
//	126     the command was found but could not be started
//	127     the command was not found: nothing was sent
//	128+n   signal n ended the command, or the wait for the lock
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
//	        tick; sessions last 2 to 20 ticks (default 2s)
//	  -v
//	        log sessions and connections to stderr
//
//	dev runs a ZooKeeper server inside this process, for development: one node, in
//	memory, nothing is kept; not for production. Any ZooKeeper client can connect to
//	it. It runs until it is interrupted.
package main
