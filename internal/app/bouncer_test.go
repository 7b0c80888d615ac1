// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"
)

const bouncedKey = "the-secret-of-the-key-behind-a-pooler"

// TestAVolleyBehindPgBouncerIsAdmittedExactly: STO-1, RUN-1. Two programs reach one
// database through PgBouncer in transaction mode. Where there is none, the URL says
// all the same that there were one.
func TestAVolleyBehindPgBouncerIsAdmittedExactly(t *testing.T) {
	const limit, sent = 20, 80
	url := database.Reused(t)
	bounced, ok := database.Bounced(t)
	if ok {
		url = bounced(url)
	} else {
		url += "&pooling=transaction"
	}
	w := newWorldOn(t, url, start, replicaModel+"keys:\n  - {name: k, secret: "+bouncedKey+", limits: {rpm: 20}}\n", nil)
	other := w.replica()
	answers := volley(sent, 16, func(i int) answer {
		if i%2 == 0 {
			return other.chat(bouncedKey, "m")
		}
		return w.stream(bouncedKey, "m", "")
	})
	if admitted, refused := count(answers, 200), count(answers, 429); admitted != limit || refused != sent-limit {
		t.Errorf("%d were admitted and %d refused, want %d and %d", admitted, refused, limit, sent-limit)
	}
	if n := w.provider.Bill().Requests; n != limit {
		t.Errorf("%d reached the provider", n)
	}
	w.settled("1", "10")
}
