// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Reader reads one object. Each method asks for one field and is silent when
// the document has none; what is wrong is collected, never returned. A null
// clears: it stands for the zero value, and for nil where there is a nil.
type Reader struct {
	node  *Node
	path  string
	asked map[string]bool
	*tally
}

// tally is what one whole reading collects.
type tally struct {
	problems Problems
	given    map[string]bool
}

// Read hands the object n to fields, and returns the paths of the fields that
// it gives, null or not, and all problems by line. A field that was not asked
// for is one.
func Read(n *Node, fields func(*Reader)) (given map[string]bool, err error) {
	t := &tally{given: map[string]bool{}}
	t.object("", n, fields)
	slices.SortStableFunc(t.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return t.given, t.problems.Err()
}

func (t *tally) object(path string, n *Node, fields func(*Reader)) {
	if n.Kind != Object {
		t.fail(path, n.Line, "must be an object, is %s", n.Kind)
		return
	}
	r := &Reader{node: n, path: path, asked: map[string]bool{}, tally: t}
	fields(r)
	for _, m := range n.Members {
		if !r.asked[m.Name] {
			t.fail(Join(path, m.Name), m.Line, "unknown field%s", r.nearest(m.Name))
		}
	}
}

func (t *tally) fail(path string, line int, format string, args ...any) {
	t.problems = append(t.problems, Problem{Path: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// nearest suggests a field that was meant.
func (r *Reader) nearest(name string) string {
	for _, known := range slices.Sorted(maps.Keys(r.asked)) {
		if squash(known) == squash(name) || strings.TrimSuffix(known, "s") == strings.TrimSuffix(name, "s") {
			return ": write " + known
		}
	}
	return ""
}

func squash(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// Path is where the object stands.
func (r *Reader) Path() string { return r.path }

// Line is the line on which the object begins.
func (r *Reader) Line() int { return r.node.Line }

// LineOf is the line of what stands at a path below the object, or of the
// nearest above it.
func (r *Reader) LineOf(path string) int { return r.node.LineOf(path) }

// Fail adds a problem at a field: at its line when the document has it, else at
// the object's.
func (r *Reader) Fail(field, format string, args ...any) {
	r.blame(Problem{Path: field, Text: fmt.Sprintf(format, args...)})
}

// blame adds a problem whose path is below this object. A value out of the
// environment may be a secret in the wrong place: of that, no text that quotes
// anything is shown.
func (r *Reader) blame(p Problem) {
	n, line := r.node.find(p.Path)
	if p.Line == 0 {
		p.Line = line
	}
	if n.Environment && strings.Contains(p.Text, `"`) {
		p.Text = "the value from the environment cannot be used here"
	}
	p.Path = Join(r.path, p.Path)
	r.problems = append(r.problems, p)
}

// Add takes over the problems of a check that knows no lines; their paths are
// below this object.
func (r *Reader) Add(err error) {
	if err == nil {
		return
	}
	problems, ok := err.(Problems) //nolint:errorlint // wrapped problems would be one problem
	if !ok {
		r.Fail("", "%v", err)
	}
	for _, p := range problems {
		r.blame(p)
	}
}

// AddRest is Add for the check of what was read just now: it leaves out what is
// wrong with fields of which something is said already.
func (r *Reader) AddRest(err error) {
	problems, ok := err.(Problems) //nolint:errorlint // wrapped problems would be one problem
	if !ok {
		r.Add(err)
		return
	}
	said := map[string]bool{}
	for i := range r.problems {
		said[r.problems[i].Path] = true
	}
	for _, p := range problems {
		if p.Path == "" || !said[Join(r.path, p.Path)] {
			r.blame(p)
		}
	}
}

// Node returns a field as it stands, nil when the document has none.
func (r *Reader) Node(field string) *Node {
	r.asked[field] = true
	n := r.node.Member(field)
	if n != nil {
		r.given[Join(r.path, field)] = true
	}
	return n
}

// Give counts fields below this object as given: those of an object that a null
// clears as a whole.
func (r *Reader) Give(fields ...string) {
	for _, field := range fields {
		r.given[Join(r.path, field)] = true
	}
}

// Given returns the paths below this object of the fields that the document
// gives, null or not. A list counts as one value.
func (r *Reader) Given() map[string]bool {
	below := map[string]bool{}
	for path := range r.given {
		if rest, ok := strings.CutPrefix(path, r.path); ok {
			below[strings.TrimPrefix(rest, ".")] = true
		}
	}
	return below
}

// Later refuses fields that a coming version reads.
func (r *Reader) Later(fields ...string) {
	r.Refuse("is not available in this version: leave it out", fields...)
}

// Refuse refuses known fields for one reason.
func (r *Reader) Refuse(reason string, fields ...string) {
	for _, field := range fields {
		if r.Node(field) != nil {
			r.Fail(field, "%s", reason)
		}
	}
}

// Need fails for those of the fields that the document has not.
func (r *Reader) Need(fields ...string) {
	for _, field := range fields {
		if n := r.Node(field); n == nil || n.Kind == Null {
			r.Fail(field, "is required")
		}
	}
}

// scalar returns a field that is neither absent nor null; for null it calls
// clear.
func (r *Reader) scalar(field string, clear func()) *Node {
	n := r.Node(field)
	if n == nil {
		return nil
	}
	if n.Kind == Null {
		clear()
		return nil
	}
	return n
}

// String reads a string.
func (r *Reader) String(field string, into *string) {
	n := r.scalar(field, func() { *into = "" })
	switch {
	case n == nil:
	case n.Kind == String:
		*into = n.Text
	case n.Kind == Number || n.Kind == Bool:
		r.Fail(field, "must be a string: write it in quotes")
	default:
		r.Fail(field, "must be a string, is %s", n.Kind)
	}
}

// Choice reads one of a few words.
func (r *Reader) Choice(field string, into *string, words ...string) {
	n := r.Node(field)
	if n == nil {
		return
	}
	if n.Kind != String || !slices.Contains(words, n.Text) {
		r.Fail(field, "must be %s%s", strings.Join(words, " or "), n.is())
		return
	}
	*into = n.Text
}

// Bool reads true or false.
func (r *Reader) Bool(field string, into *bool) {
	n := r.scalar(field, func() { *into = false })
	switch {
	case n == nil:
	case (n.Kind == Bool || n.Environment) && (n.Text == "true" || n.Text == "false"):
		*into = n.Text == "true"
	default:
		r.Fail(field, "must be true or false%s", n.is())
	}
}

// Int reads a whole number from least to most; null is 0 where that is one of
// them, and else leaves what stands.
func (r *Reader) Int(field string, into *int64, least, most int64) {
	n := r.scalar(field, func() {
		if least <= 0 && most >= 0 {
			*into = 0
		}
	})
	if n == nil {
		return
	}
	value, err := strconv.ParseInt(n.Text, 10, 64)
	written := n.Kind == Number || n.Environment
	if !written || err != nil || strconv.FormatInt(value, 10) != n.Text || value < least || value > most {
		r.Fail(field, "must be a whole number from %d to %d%s", least, most, n.is())
		return
	}
	*into = value
}

// OptInt is Int with nil for absent and null.
func (r *Reader) OptInt(field string, into **int64, least, most int64) {
	n := r.scalar(field, func() { *into = nil })
	if n == nil {
		return
	}
	before := len(r.problems)
	var value int64
	r.Int(field, &value, least, most)
	if len(r.problems) == before {
		*into = &value
	}
}

// Decimal reads a decimal string or a whole number, of which parse makes a
// value (SPEC MON-4). Absent and null leave present false; cleared tells null.
func (r *Reader) Decimal(field string, parse func(string) error, clear func()) {
	n := r.scalar(field, clear)
	if n == nil {
		return
	}
	if n.Kind == Number && strings.Trim(n.Text, "0123456789") != "" {
		r.Fail(field, "must be a decimal string: write it in quotes%s", n.is())
		return
	}
	if n.Kind != Number && n.Kind != String {
		r.Fail(field, "must be a decimal string such as \"1.50\", is %s", n.Kind)
		return
	}
	r.parse(field, n, parse)
}

// Text reads a string of which parse makes a value.
func (r *Reader) Text(field string, parse func(string) error, clear func()) {
	n := r.scalar(field, clear)
	if n == nil {
		return
	}
	if n.Kind != String {
		r.Fail(field, "must be a string, is %s", n.Kind)
		return
	}
	r.parse(field, n, parse)
}

func (r *Reader) parse(field string, n *Node, parse func(string) error) {
	if err := parse(n.Text); err != nil {
		r.Fail(field, "%v", err)
	}
}

// Duration reads a length of time such as 500ms, 30s, 15m, 2h, 7d or 1w, in
// microseconds.
func (r *Reader) Duration(field string, into *int64, least, most int64) {
	if n := r.Node(field); n != nil && n.Kind != String {
		r.Fail(field, "must be a length of time such as 30s%s", n.is())
		return
	}
	r.Text(field, func(s string) error {
		micros, err := ParseDuration(s, least, most)
		if err == nil {
			*into = micros
		}
		return err
	}, func() {})
}

// Strings reads a list of strings; null leaves it nil, an empty list does not.
func (r *Reader) Strings(field string, into *[]string, most int) {
	n := r.scalar(field, func() { *into = nil })
	if n == nil {
		return
	}
	if n.Kind != Array {
		r.Fail(field, "must be a list of strings%s", n.is())
		return
	}
	if len(n.Items) > most {
		r.Fail(field, "has %d items, more than %d", len(n.Items), most)
		return
	}
	list := make([]string, 0, len(n.Items))
	for i, item := range n.Items {
		if item.Kind != String {
			r.fail(fmt.Sprintf("%s[%d]", Join(r.path, field), i), item.Line, "must be a string: write it in quotes")
			continue
		}
		list = append(list, item.Text)
	}
	*into = list
}

// Object reads an object below this one; null is as if it were absent.
func (r *Reader) Object(field string, fields func(*Reader)) {
	if n := r.scalar(field, func() {}); n != nil {
		r.object(Join(r.path, field), n, fields)
	}
}

// Objects reads a list of objects.
func (r *Reader) Objects(field string, most int, fields func(i int, item *Reader)) {
	n := r.scalar(field, func() {})
	if n == nil {
		return
	}
	if n.Kind != Array {
		r.Fail(field, "must be a list%s", n.is())
		return
	}
	if len(n.Items) > most {
		r.Fail(field, "has %d items, more than %d", len(n.Items), most)
		return
	}
	for i, item := range n.Items {
		// A tally of its own keeps what an item gives apart from the others.
		t := &tally{given: map[string]bool{}}
		t.object(fmt.Sprintf("%s[%d]", Join(r.path, field), i), item, func(sub *Reader) { fields(i, sub) })
		r.problems = append(r.problems, t.problems...)
	}
}

// Map reads an object with free names and strings as values; null leaves nil.
func (r *Reader) Map(field string, into *map[string]string, most int) {
	n := r.scalar(field, func() { *into = nil })
	if n == nil {
		return
	}
	if n.Kind != Object {
		r.Fail(field, "must be an object%s", n.is())
		return
	}
	if len(n.Members) > most {
		r.Fail(field, "has %d fields, more than %d", len(n.Members), most)
		return
	}
	values := make(map[string]string, len(n.Members))
	for _, m := range n.Members {
		if m.Value.Kind != String {
			r.fail(Join(Join(r.path, field), m.Name), m.Line, "must be a string: write it in quotes")
			continue
		}
		values[m.Name] = m.Value.Text
	}
	*into = values
}

// is tells what a value is instead of what it must be.
func (n *Node) is() string {
	switch {
	case n.Environment:
		return ", which the value from the environment is not"
	case n.Kind == String || n.Kind == Number || n.Kind == Bool:
		return ", is " + Quote(n.Text)
	default:
		return ", is " + n.Kind.String()
	}
}
