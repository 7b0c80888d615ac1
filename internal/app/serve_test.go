// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/app"
)

const (
	serveKey   = "the-secret-of-the-served-key"
	serveToken = "the-admin-token-of-the-served-program"
	serveText  = `admin_token: ` + serveToken + `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + serveKey + `}
`
)

// writeCertificate makes a key pair for 127.0.0.1 with that serial number.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "weir"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) {
		path := filepath.Join(dir, name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	write("cert.pem", "CERTIFICATE", der)
	write("key.pem", "EC PRIVATE KEY", secret)
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// trusting is a client that trusts one certificate and keeps no connection.
func trusting(c *x509.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(c)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}}
}

// TestHTTPSTakesUpARenewedCertificate, and keeps the one it has while the files
// do not fit together: STO-5.
func TestHTTPSTakesUpARenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	first := writeCertificate(t, dir, 1)
	log := &keptLog{}
	w := newWorldWith(t, start, fmt.Sprintf("tls: {cert: %q, key: %q}\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))+serveText,
		func(o *app.Options) { o.Stderr = log })
	chat := func(c *http.Client) (protocol string, err error) {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://"+w.server.Addr()+"/v1/chat/completions", strings.NewReader(chatBody("m", "")))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+serveKey)
		response, err := c.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		return response.Proto + " " + response.Status, nil
	}
	if got, err := chat(trusting(first)); err != nil || got != "HTTP/2.0 200 OK" {
		t.Fatalf("over TLS: %q (%v)", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.eventually("the broken file to be looked at", func() bool {
		if _, err := chat(trusting(first)); err != nil {
			t.Fatalf("a broken file replaced a working one: %v", err)
		}
		return log.has("the old one stays")
	})
	second := writeCertificate(t, dir, 2)
	w.eventually("the renewed certificate", func() bool {
		_, err := chat(trusting(second))
		return err == nil
	})
	if _, err := chat(trusting(first)); err == nil {
		t.Error("the old certificate is still served")
	}
	if _, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}}).DialContext(context.Background(), "tcp", w.server.Addr()); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// get sends one request to any address of the program.
func (w *world) get(url, credential string) answer {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return answer{err: err}
	}
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	return w.send(request)
}

// TestAdministrationAndModelsAreApart: admin_listen moves administration and
// leaves nothing of it behind (SPEC section 14).
func TestAdministrationAndModelsAreApart(t *testing.T) {
	w := newWorld(t, "admin_listen: 127.0.0.1:0\n"+serveText)
	models, admin := "http://"+w.server.Addr(), "http://"+w.server.AdminAddr()
	if models == admin {
		t.Fatal("both listen at one address")
	}
	for url, want := range map[string]int{
		models + "/v1/models": 200, models + "/api/v1/keys": 404, models + "/metrics": 404, models + "/healthz": 200, models + "/readyz": 200,
		admin + "/v1/models": 401, admin + "/metrics": 200,
	} {
		if a := w.get(url, serveKey); a.status != want {
			t.Errorf("%s: %v, want %d", url, a, want)
		}
	}
	if a := w.get(admin+"/api/v1/keys", serveToken); a.status != 200 {
		t.Errorf("the admin API: %v", a)
	}
}

// TestAKeyOpensNoAdministrationAndATokenNoModel: ADM-2, BR-195.
func TestAKeyOpensNoAdministrationAndATokenNoModel(t *testing.T) {
	w := newWorld(t, serveText)
	base := "http://" + w.server.Addr()
	for _, path := range []string{"/api/v1/keys", "/api/v1/usage", "/api/v1/funds", "/api/v1/audit", "/api/v1/requests"} {
		if a := w.get(base+path, serveToken); a.status != 200 {
			t.Errorf("%s with the token: %v", path, a)
		}
		for _, credential := range []string{serveKey, "", "the-secret-of-nobody-at-all"} {
			if a := w.get(base+path, credential); a.status != 401 && a.status != 403 {
				t.Errorf("%s with %q: %v", path, credential, a)
			}
		}
	}
	w.must(w.chat(serveToken, "m"), 401, "invalid_api_key")
	w.must(w.get(base+"/v1/models", serveToken), 401, "invalid_api_key")
	w.must(w.get(base+"/v1/key", serveToken), 401, "invalid_api_key")
	if n := w.provider.Bill().Requests; n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestHealthReadinessAndMetricsAskForNoKey.
func TestHealthReadinessAndMetricsAskForNoKey(t *testing.T) {
	w := newWorld(t, serveText)
	w.must(w.chat(serveKey, "m"), 200, "")
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if a := w.get(w.url(path), ""); a.status != 200 || a.body != want {
			t.Errorf("%s: %v", path, a)
		}
	}
	a := w.get(w.url("/metrics"), "")
	if a.status != 200 || !strings.Contains(a.body, "weir_") || strings.Contains(a.body, serveKey) || strings.Contains(a.body, serveToken) {
		t.Errorf("/metrics: %v", a)
	}
}

// TestWhatAClientSendsIsBounded: STO-5, ERR-5, BR-148. Body with and without a
// length, and headers.
func TestWhatAClientSendsIsBounded(t *testing.T) {
	w := newWorld(t, "bounds: {max_body_bytes: 2048, max_header_bytes: 8192}\n"+serveText)
	post := func(body io.Reader, header string) answer {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url("/v1/chat/completions"), body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+serveKey)
		request.Header.Set("X-Padding", header)
		return w.send(request)
	}
	padded := func(n int) string {
		body := chatBody("m", `"x":""`)
		return strings.Replace(body, `"x":""`, `"x":"`+strings.Repeat("y", n-len(body))+`"`, 1)
	}
	w.must(post(strings.NewReader(padded(2048)), ""), 200, "")
	w.must(post(io.MultiReader(strings.NewReader(padded(2048))), ""), 200, "")
	for _, n := range []int{2049, 100_000, 4 << 20} {
		w.must(post(strings.NewReader(padded(n)), ""), 413, "request_too_large")
		w.must(post(io.MultiReader(strings.NewReader(padded(n))), ""), 413, "request_too_large") // chunked
	}
	w.must(post(strings.NewReader(chatBody("m", "")), strings.Repeat("h", 4096)), 200, "")
	if a := post(strings.NewReader(chatBody("m", "")), strings.Repeat("h", 64<<10)); a.status != 431 {
		t.Errorf("large headers: %v (%v)", a, a.err)
	}
	if n := w.provider.Bill().Requests; n != 3 {
		t.Errorf("%d requests reached the provider, want 3", n)
	}
	w.settled("1", "10")
}

// raw opens a connection and writes text as it stands.
func (w *world) raw(text string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", w.server.Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// answered reads one answer off a connection.
func answered(reader *bufio.Reader) (status int, body string, err error) {
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func head(path, key string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", path, key, length)
}

// TestASlowBodyIsRefused within the bound, and closes the connection: STO-5.
// Where nobody waits for the body, the refusal does not either.
func TestASlowBodyIsRefused(t *testing.T) {
	const bound, prompt = 3 * time.Second, 2500 * time.Millisecond
	w := newWorld(t, "bounds: {body_timeout: 3s, header_timeout: 1s}\n"+serveText)
	_, reader := w.raw("POST /v1/chat/completions HTTP/1.1\r\nHost: weir\r\nX-Slow")
	if text, err := io.ReadAll(reader); err != nil && !isReset(err) || strings.Contains(string(text), "200") {
		t.Errorf("slow headers: %q (%v)", text, err)
	}
	w.must(w.chat(serveKey, "m"), 200, "")
	for _, c := range []struct {
		name, path, key string
		status          int
		least, most     time.Duration
	}{
		{"of a known key", "/v1/chat/completions", serveKey, 400, bound, patience},
		{"of an unknown key", "/v1/chat/completions", "the-secret-of-nobody-at-all", 401, 0, prompt},
		{"of an unknown path", "/v1/nothing", serveKey, 404, 0, prompt},
		{"of a route without one", "/v1/models", serveKey, 405, 0, prompt},
		{"of administration, without a token", "/api/v1/keys", serveKey, 401, 0, prompt},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, reader := w.raw(head(c.path, c.key, 1000) + `{"model":`)
			status, body, err := answered(reader)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if status != c.status || took < c.least || took > c.most {
				t.Errorf("%d after %s: %s", status, took, body)
			}
			if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) && !isReset(err) {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// TestConnectionsAreBounded: STO-5. The third waits until one of two ends.
func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, "bounds: {max_connections: 2}\n"+serveText)
	ask := "GET /healthz HTTP/1.1\r\nHost: weir\r\n\r\n"
	first, reader := w.raw(ask)
	if _, _, err := answered(reader); err != nil {
		t.Fatal(err)
	}
	_, reader = w.raw(ask)
	if _, _, err := answered(reader); err != nil {
		t.Fatal(err)
	}
	third, reader := w.raw(ask)
	if err := third.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Peek(1); err == nil {
		t.Fatal("a third connection was served")
	}
	if err := errors.Join(first.Close(), third.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	if status, _, err := answered(bufio.NewReader(third)); err != nil || status != http.StatusOK {
		t.Errorf("after one has ended: %d (%v)", status, err)
	}
}
