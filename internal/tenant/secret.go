// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// A secret made here is SecretMark, 27 base62 characters of 160 random bits
// and 9 of a tag. The tag is an HMAC with the store's secret: a made-up secret
// is refused without a look-up (SPEC KEY-2). It proves nothing else; the hash
// does.
const (
	SecretMark = "weir_"
	// SecretRandomBytes is how many random bytes NewSecret takes.
	SecretRandomBytes = 20

	randomChars = 27
	tagBytes    = 6
	tagChars    = 9
	secretChars = len(SecretMark) + randomChars + tagChars
	prefixChars = len(SecretMark) + 4
)

// Bounds of a secret that somebody brings, in bytes. Only its hash is kept, and
// without salt, so a short one could be guessed from the hash.
const (
	MinSecret = 16
	MaxSecret = 256
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewSecret makes a key's secret out of random bytes, with the visible prefix
// and the hash under which it is stored.
func NewSecret(random [SecretRandomBytes]byte, storeSecret []byte) (secret, prefix string, hash [sha256.Size]byte) {
	body := SecretMark + encode(random[:], randomChars)
	secret = body + tag(body, storeSecret)
	return secret, SecretPrefix(secret), HashSecret(secret)
}

// CheckTag reports whether a secret has the form of those made here, and
// whether its tag was computed with this store's secret. One that is ours and
// not valid exists nowhere: it needs no look-up.
func CheckTag(secret string, storeSecret []byte) (ours, valid bool) {
	if len(secret) != secretChars || !strings.HasPrefix(secret, SecretMark) {
		return false, false
	}
	for i := len(SecretMark); i < len(secret); i++ {
		if !alphanumeric(secret[i]) {
			return false, false
		}
	}
	body, mark := secret[:secretChars-tagChars], secret[secretChars-tagChars:]
	return true, hmac.Equal([]byte(mark), []byte(tag(body, storeSecret)))
}

// HashSecret is the SHA-256 under which a secret is stored and found.
func HashSecret(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// SameHash compares two hashes in constant time.
func SameHash(a, b [sha256.Size]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// SecretPrefix is the part of a secret that may be shown: the mark and four
// characters of one made here, the first quarter, at most eight characters, of
// any other.
func SecretPrefix(secret string) string {
	if len(secret) == secretChars && strings.HasPrefix(secret, SecretMark) {
		return secret[:prefixChars]
	}
	return secret[:min(8, len(secret)/4)]
}

// ValidSecret tells what is wrong with a secret that somebody brings, without
// showing it. The form of those made here is refused: its tag would be wrong,
// and it would be turned away unseen.
func ValidSecret(secret string) error {
	if len(secret) < MinSecret || len(secret) > MaxSecret {
		return fmt.Errorf("must have %d to %d characters", MinSecret, MaxSecret)
	}
	for i := range len(secret) {
		if secret[i] <= ' ' || secret[i] > '~' {
			return errors.New("must have printable ASCII characters without spaces only")
		}
	}
	if ours, _ := CheckTag(secret, nil); ours {
		return errors.New("has the form of a secret that weir makes, which belongs to one store: choose another form")
	}
	return nil
}

func tag(body string, storeSecret []byte) string {
	mac := hmac.New(sha256.New, storeSecret)
	mac.Write([]byte(body))
	return encode(mac.Sum(nil)[:tagBytes], tagChars)
}

// encode writes bytes as a base62 number of exactly width digits; width must
// hold them.
func encode(value []byte, width int) string {
	n, radix, digit := new(big.Int).SetBytes(value), big.NewInt(int64(len(base62))), new(big.Int)
	text := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, radix, digit)
		text[i] = base62[digit.Int64()]
	}
	return string(text)
}
