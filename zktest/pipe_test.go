package zktest

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func pipe(t *testing.T) (client, server *pipeEnd) {
	client, server = newPipe("client", "server")
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestPipeBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var client, server net.Conn = pipe(t)
		for range 3 {
			if n, err := client.Write([]byte("abc")); n != 3 || err != nil {
				t.Fatal(n, err)
			}
		}
		b := make([]byte, 20)
		if n, err := server.Read(b); string(b[:n]) != "abcabcabc" || err != nil {
			t.Errorf("%q %v", b[:n], err)
		}
		if client.RemoteAddr().String() != "server" || server.RemoteAddr().String() != "client" || client.LocalAddr().Network() == "" {
			t.Error("addresses")
		}
	})
}

func TestPipeReadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		go func() {
			time.Sleep(time.Minute)
			server.Write([]byte("x"))
		}()
		start := time.Now()
		if n, err := client.Read(make([]byte, 5)); n != 1 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("%d %v after %v", n, err, time.Since(start))
		}
	})
}

func TestPipeWriteWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			io.CopyN(io.Discard, server, pipeBuffer)
		}()
		if n, err := client.Write(make([]byte, pipeBuffer+10)); n != pipeBuffer+10 || err != nil || time.Since(start) != time.Second {
			t.Errorf("%d %v after %v", n, err, time.Since(start))
		}
	})
}

func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		start := time.Now()
		client.SetDeadline(start.Add(time.Second))
		_, err := client.Read(make([]byte, 1))
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) != time.Second {
			t.Errorf("read: %v after %v", err, time.Since(start))
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write after the deadline: %v", err)
		}
		client.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := client.Write(make([]byte, pipeBuffer+1)); n != pipeBuffer || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write that waits: %d %v", n, err)
		}
		// A deadline that is taken back doesn't count, and one that is set
		// while a read waits does.
		client.SetReadDeadline(time.Now().Add(time.Second))
		client.SetReadDeadline(time.Time{})
		go func() {
			time.Sleep(time.Minute)
			client.SetReadDeadline(time.Now())
		}()
		start = time.Now()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		// The other end has deadlines of its own.
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	})
}

func TestPipeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		server.Write([]byte("rest"))
		server.Close()
		b := make([]byte, 10)
		if n, err := client.Read(b); string(b[:n]) != "rest" || err != nil {
			t.Errorf("%q %v", b[:n], err)
		}
		if _, err := client.Read(b); err != io.EOF {
			t.Errorf("read: %v", err)
		}
		if _, err := client.Write(b); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
		if _, err := server.Read(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own read: %v", err)
		}
		if err := server.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own deadline: %v", err)
		}
		client.Close()
		if _, err := client.Read(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read of the closed: %v", err)
		}
	})
}

func TestPipeCloseWakesReaderAndWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		errs := make(chan error, 2)
		go func() { _, err := client.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := client.Write(make([]byte, pipeBuffer+1)); errs <- err }()
		synctest.Wait()
		client.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
		_ = server
	})
}

func TestPipeReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		server.Write([]byte("rest"))
		server.reset()
		server.Close()
		b := make([]byte, 10)
		if n, err := client.Read(b); string(b[:n]) != "rest" || err != nil {
			t.Errorf("%q %v", b[:n], err)
		}
		if _, err := client.Read(b); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		if _, err := client.Write(b); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
	})
}
