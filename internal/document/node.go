// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MaxDepth is how deep a document may nest.
const MaxDepth = 32

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String is the kind with its article, as errors name it.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "true or false"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "a list"
	case Object:
		return "an object"
	default:
		return "unknown"
	}
}

// Node is one value of a document.
type Node struct {
	Kind Kind
	// Text is the value of a Bool ("true", "false"), Number (as written) or
	// String.
	Text    string
	Items   []*Node  // of an Array
	Members []Member // of an Object, in the document's order, names distinct
	Line    int      // 0: unknown
	// Environment says that Text came from the environment: it may be a secret,
	// so no error shows it, and it has no kind of its own, so it is read as a
	// number or a truth value where one is wanted.
	Environment bool
}

// Member is one name and value of an object.
type Member struct {
	Name  string
	Line  int
	Value *Node
}

// Member returns the value of a member, nil when there is none.
func (n *Node) Member(name string) *Node {
	for i := range n.Members {
		if n.Members[i].Name == name {
			return n.Members[i].Value
		}
	}
	return nil
}

// Without is n, an object, less some of its members.
func (n *Node) Without(names ...string) *Node {
	rest := *n
	rest.Members = nil
next:
	for _, m := range n.Members {
		for _, name := range names {
			if m.Name == name {
				continue next
			}
		}
		rest.Members = append(rest.Members, m)
	}
	return &rest
}

// LineOf returns the line of the value at path below n: of the nearest one
// above it that the document has.
func (n *Node) LineOf(path string) int {
	_, line := n.find(path)
	return line
}

// find follows a path as far as the document has it.
func (n *Node) find(path string) (last *Node, line int) {
	last, line = n, n.Line
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := last.Member(part)
		if i, err := strconv.Atoi(part); err == nil && last.Kind == Array && i >= 0 && i < len(last.Items) {
			next = last.Items[i]
		}
		if next == nil {
			break
		}
		last, line = next, next.Line
	}
	return last, line
}

// ParseJSON reads one JSON value. Names that stand twice in an object, invalid
// UTF-8, anything after the value and nesting past MaxDepth are errors.
func ParseJSON(text []byte) (*Node, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	n, err := readJSON(decoder, 0)
	if err != nil {
		return nil, jsonProblem(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, Problems{{Text: "more than one JSON value"}}
	}
	return n, nil
}

var errDepth = fmt.Errorf("nested deeper than %d", MaxDepth)

func readJSON(decoder *jsontext.Decoder, depth int) (*Node, error) {
	if depth > MaxDepth {
		return nil, errDepth
	}
	token, err := decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindNull:
		return &Node{Kind: Null}, nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return &Node{Kind: Bool, Text: token.String()}, nil
	case jsontext.KindNumber:
		return &Node{Kind: Number, Text: token.String()}, nil
	case jsontext.KindString:
		return &Node{Kind: String, Text: token.String()}, nil
	case jsontext.KindBeginArray:
		return readArray(decoder, depth)
	default:
		return readObject(decoder, depth)
	}
}

func readArray(decoder *jsontext.Decoder, depth int) (*Node, error) {
	n := &Node{Kind: Array}
	for decoder.PeekKind() != jsontext.KindEndArray {
		item, err := readJSON(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
	_, err := decoder.ReadToken()
	return n, err
}

func readObject(decoder *jsontext.Decoder, depth int) (*Node, error) {
	n := &Node{Kind: Object}
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		member := Member{Name: name.String()}
		if member.Value, err = readJSON(decoder, depth+1); err != nil {
			return nil, err
		}
		n.Members = append(n.Members, member)
	}
	_, err := decoder.ReadToken()
	return n, err
}

// jsonProblem tells a syntax error without the library's own words about Go.
func jsonProblem(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			return Problems{{Text: "the name at " + Quote(string(syntax.JSONPointer)) + " stands twice"}}
		}
	}
	return Problems{{Text: "not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")}}
}

// JSON is the node as a JSON text, for a reader that takes one. Numbers that
// JSON cannot write are written as strings.
func (n *Node) JSON() []byte {
	text, err := n.append(nil)
	if err != nil {
		return []byte("null")
	}
	return text
}

func (n *Node) append(to []byte) ([]byte, error) {
	switch n.Kind {
	case Null:
		return append(to, "null"...), nil
	case Bool:
		return append(to, n.Text...), nil
	case Number:
		if number := jsontext.Value(n.Text); number.IsValid() {
			return append(to, number...), nil
		}
		return jsontext.AppendQuote(to, n.Text)
	case String:
		return jsontext.AppendQuote(to, n.Text)
	case Array:
		return n.appendItems(to)
	case Object:
		return n.appendMembers(to)
	default:
		return nil, fmt.Errorf("a node of kind %d", n.Kind)
	}
}

func (n *Node) appendItems(to []byte) ([]byte, error) {
	to = append(to, '[')
	var err error
	for i, item := range n.Items {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = item.append(to); err != nil {
			return nil, err
		}
	}
	return append(to, ']'), nil
}

func (n *Node) appendMembers(to []byte) ([]byte, error) {
	to = append(to, '{')
	var err error
	for i, m := range n.Members {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = jsontext.AppendQuote(to, m.Name); err != nil {
			return nil, err
		}
		if to, err = m.Value.append(append(to, ':')); err != nil {
			return nil, err
		}
	}
	return append(to, '}'), nil
}
