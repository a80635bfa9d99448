package session_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// certificate makes one for a name that vouches for itself.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		DNSNames:              []string{name},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// terminate puts TLS in front of a server, over TCP.
func terminate(t *testing.T, srv *zktest.Server, cert tls.Certificate) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", srv.Addr())
			if err != nil {
				in.Close()
				return
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				wg.Go(func() {
					io.Copy(pair[0], pair[1])
					pair[0].Close()
					pair[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	srv := zktest.Start(t)
	cert, pool := certificate(t, "zk.example")
	addr := terminate(t, srv, cert)
	_, port, _ := net.SplitHostPort(addr)
	_, stranger := certificate(t, "zk.example")

	// By its name: whoever dials it gets there.
	byName := session.Config{
		Servers: []string{net.JoinHostPort("zk.example", port)},
		TLS:     &tls.Config{RootCAs: pool},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	s, l := open(t, byName)
	path := node(t, l, "/n-")
	_, lost := hold(t, l, path)
	srv.Cut(l.ID())
	if err := l.Prove(t.Context(), path); err != nil || lost.yet() {
		t.Error(err)
	}
	s.Close()
	if byName.TLS.ServerName != "" {
		t.Error("the caller's configuration was changed")
	}

	// By its address, with the name said.
	byAddress := session.Config{Servers: []string{addr}, TLS: &tls.Config{RootCAs: pool, ServerName: "zk.example"}}
	s, _ = open(t, byAddress)
	s.Close()

	for name, wrong := range map[string]*tls.Config{
		"unknown authority": {RootCAs: stranger, ServerName: "zk.example"},
		"another name":      {RootCAs: pool, ServerName: "other.example"},
		"no name":           {RootCAs: pool},
	} {
		cfg := byAddress
		cfg.TLS = wrong
		// The wait ends when the dialer has been called for a second time.
		ctx, cancel := context.WithCancel(t.Context())
		var calls int
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if calls++; calls > 1 {
				cancel()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		srv.ResetCounts()
		_, err := session.Open(ctx, cfg)
		cancel()
		var verify *tls.CertificateVerificationError
		if !errors.As(err, &verify) || srv.Requests().Of(zktest.OpConnect) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
