// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/fault"
)

// maxSecretBytes bounds what is hashed and looked up.
const maxSecretBytes = 512

// secretOf reads the API key from wherever the clients' SDKs put it (KEY-1) and
// takes it out of the URL. Two different keys in one request: 401.
func secretOf(r *http.Request) (string, *fault.Fault) {
	var found []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			found = append(found, s)
		}
	}
	for _, v := range r.Header.Values("Authorization") {
		if scheme, rest, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
			add(rest)
		}
	}
	for _, name := range [...]string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		for _, v := range r.Header.Values(name) {
			add(v)
		}
	}
	if strings.Contains(r.URL.RawQuery, "key=") {
		for _, v := range takeQueryKey(r.URL) {
			add(v)
		}
	}
	if len(found) == 0 {
		return "", denied("no API key came with the request; send `Authorization: Bearer KEY`")
	}
	for _, s := range found[1:] {
		if s != found[0] {
			return "", denied("the request carries two different API keys; send one")
		}
	}
	if len(found[0]) > maxSecretBytes {
		return "", denied("the API key is not valid")
	}
	return found[0], nil
}

func takeQueryKey(u *url.URL) []string {
	query := u.Query()
	keys := query["key"]
	query.Del("key")
	u.RawQuery = query.Encode()
	return keys
}

func denied(message string) *fault.Fault {
	f := fault.New(fault.InvalidAPIKey, "%s", message)
	f.NoRetry = true
	return f
}
