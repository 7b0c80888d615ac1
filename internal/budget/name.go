// SPDX-License-Identifier: Apache-2.0

package budget

import "strings"

// The ids of the objects that can own budgets: a mark and so many characters.
const (
	keyMark    = "key_"
	planMark   = "pla_"
	idLength   = len(keyMark) + 16
	ownerJoint = ": "
)

// ObjectName is the name under which a budget is kept among all budgets of its
// workspace: its own, which for one that was declared with a key or plan follows
// the owner's id. So two keys may each have a budget of one name.
func ObjectName(owner, name string) string {
	if owner == "" {
		return name
	}
	return owner + ownerJoint + name
}

// SplitObjectName is the budget's own name in what ObjectName returned for the
// same owner.
func SplitObjectName(owner, objectName string) string {
	if owner == "" {
		return objectName
	}
	return strings.TrimPrefix(objectName, owner+ownerJoint)
}

// owned reports whether a name looks as if it had an owner. No budget may be
// named so, or it could take the place of another.
func owned(name string) bool {
	if len(name) < idLength+len(ownerJoint) || !strings.HasPrefix(name[idLength:], ownerJoint) {
		return false
	}
	if !strings.HasPrefix(name, keyMark) && !strings.HasPrefix(name, planMark) {
		return false
	}
	for _, c := range []byte(name[len(keyMark):idLength]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
