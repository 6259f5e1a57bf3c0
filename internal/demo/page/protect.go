package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// protect restricts a handler to requests of the page itself and of users who open it on this machine.
// Pages of other sites can make a browser send requests to 127.0.0.1, also under a host name of their
// own that resolves to it, so that the browser lets them read the answer.
func protect(port int, next http.Handler) http.Handler {
	hosts := []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)}
	policy := contentSecurityPolicy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Frame-Options", "DENY")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !isOneOf(hosts, r.Host) {
			message := fmt.Sprintf("Host: invalid value %q: must be %s", r.Host, strings.Join(hosts, " or "))
			http.Error(w, message, http.StatusMisdirectedRequest)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			http.Error(w, fmt.Sprintf("Origin: invalid value %q: must be http://%s", origin, r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOneOf reports whether a host is in the list. Host names are case-insensitive.
func isOneOf(hosts []string, host string) bool {
	for _, h := range hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

// contentSecurityPolicy returns a policy that permits the page's own script and style sheet by their
// hashes, style attributes, and requests of the script to the page itself.
func contentSecurityPolicy() string {
	var page bytes.Buffer
	if err := WriteLive(&page, Live{}); err != nil {
		panic(err) // a template that the tests execute
	}
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src-elem '%s'; style-src-attr 'unsafe-inline'; "+
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		hash(page.String(), "script"), hash(page.String(), "style"))
}

// hash returns the hash of the content of the only element of a name.
func hash(page, element string) string {
	_, rest, _ := strings.Cut(page, "<"+element+">")
	content, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
