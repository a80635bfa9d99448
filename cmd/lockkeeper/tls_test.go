//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// A server that speaks TLS only, knows a name that is not its address, and wants
// a certificate of its clients.
func TestRunTLS(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	cert, key, pool := selfSigned(t, "zk.example")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	addr := tunnel(t, srv, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	for _, tt := range []struct {
		name  string
		flags []string
		code  int
		err   string
	}{
		{"Good", []string{"-tls-ca", cert, "-tls-cert", cert, "-tls-key", key, "-tls-server-name", "zk.example"}, 0, ""},
		{"NoTLS", nil, exitUnavailable, ""},
		{"SystemAuthorities", []string{"-tls", "-tls-server-name", "zk.example"}, exitUnavailable, "unknown authority"},
		{"NoClientCertificate", []string{"-tls-ca", cert, "-tls-server-name", "zk.example"}, exitUnavailable, ""},
		{"OtherName", []string{"-tls-ca", cert, "-tls-cert", cert, "-tls-key", key}, exitUnavailable, "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limit := "1m"
			if tt.code != 0 {
				limit = "2s" // for what can't come about
			}
			args := append([]string{"run", "-servers", addr, "-connect-timeout", limit}, tt.flags...)
			cmd := exec.Command("lockkeeper", append(args, "/locks/a", "true")...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !bytes.Contains(stderr.Bytes(), []byte(tt.err)) {
				t.Errorf("exit code %d, stderr %q, want %d and %q", code, stderr.String(), tt.code, tt.err)
			}
		})
	}
}

// tunnel passes what comes through TLS on to srv, and returns its address.
func tunnel(t *testing.T, srv *zktest.Server, cfg *tls.Config) string {
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", srv.Addr())
			if err != nil {
				client.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				io.Copy(to, from)
				to.Close()
				from.Close()
			}
			wg.Go(func() { pass(server, client) })
			wg.Go(func() { pass(client, server) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// selfSigned makes a certificate for name that is its own authority.
func selfSigned(t *testing.T, name string) (certFile, keyFile string, pool *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, der []byte) string {
		file = filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pool = x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER), pool
}
