// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/limit"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// The headers in which a request says whose it is and what it is for.
const (
	UserHeader = "X-Weir-User"
	TagsHeader = "X-Weir-Tags"
)

// Attribution is what a request says of itself: the user that it is for, if its
// key may name one, and its tags.
type Attribution struct {
	User string
	Tags []string // distinct
}

// user is who is charged as the user: the one named, else the key's own.
func (a Attribution) user(k *tenant.Key) string {
	if a.User != "" {
		return a.User
	}
	return k.User
}

// Attribute reads who and what a request is for (KEY-7, RAT-7). users and tags
// are the values of the headers, c the request's body, nil for one without. From
// a key that may not name users nothing of it is read: such fields are the
// provider's business.
func Attribute(k *tenant.Key, users, tags []string, c *call.Call) (Attribution, *fault.Fault) {
	var a Attribution
	var f *fault.Fault
	if a.Tags, f = readTags(tags); f != nil {
		return Attribution{}, f
	}
	if k.AttributeUsers != "" {
		named := slices.Clone(users)
		if k.AttributeUsers == tenant.AttributeBody && c != nil {
			named = append(named, bodyUsers(c)...)
		}
		if a.User, f = oneUser(named); f != nil {
			return Attribution{}, f
		}
	}
	if k.RequireUser && a.user(k) == "" && c != nil {
		return Attribution{}, userFault("key %q takes only requests that name their user: send %s", k.Name, wayToName(k))
	}
	return a, nil
}

func wayToName(k *tenant.Key) string {
	if k.AttributeUsers == tenant.AttributeBody {
		return "the header " + UserHeader + ", or `user` in the body"
	}
	return "the header " + UserHeader
}

// bodyUsers are the users that a body names. Coding agents put a JSON text with
// session ids into metadata.user_id: that is no user.
func bodyUsers(c *call.Call) []string {
	var named []string
	for _, user := range []string{c.User, c.MetadataUser} {
		if user != "" && !strings.HasPrefix(strings.TrimSpace(user), "{") {
			named = append(named, user)
		}
	}
	return named
}

// oneUser: every way of naming a user comes to one identity (BR-003), so two
// that differ are an error.
func oneUser(named []string) (string, *fault.Fault) {
	user := ""
	for _, name := range named {
		if err := tenant.ValidSubject(name); err != nil {
			return "", userFault("the user that the request names %v", err)
		}
		if user != "" && user != name {
			return "", userFault("the request names two users, %q and %q: name one", user, name)
		}
		user = name
	}
	return user, nil
}

func userFault(format string, args ...any) *fault.Fault {
	f := fault.New(fault.InvalidRequest, format, args...)
	f.Param, f.NoRetry = "user", true
	return f
}

func readTags(headers []string) ([]string, *fault.Fault) {
	var tags []string
	for _, header := range headers {
		for _, tag := range strings.Split(header, ",") {
			tag = strings.Trim(tag, " \t")
			if tag == "" && len(headers) == 1 && header == "" {
				return nil, nil
			}
			if rule.ValidTag(tag) != nil {
				return nil, tagFault("%s has %q: a tag has 1 to 64 letters, digits and ._:/=-", TagsHeader, label(tag))
			}
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
			if len(tags) > limit.MaxTags {
				return nil, tagFault("%s has more than %d tags", TagsHeader, limit.MaxTags)
			}
		}
	}
	return tags, nil
}

func tagFault(format string, args ...any) *fault.Fault {
	f := fault.New(fault.InvalidRequest, format, args...)
	f.Param, f.NoRetry = TagsHeader, true
	return f
}
