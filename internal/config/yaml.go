// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	yamlparser "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/weirhq/weir/internal/document"
)

// maxWidth bounds the fields of one object. The library's time grows with the
// square of the width, and with that of the depth.
const maxWidth = 2_000

// tree turns YAML into a document, and refuses what YAML has beyond one:
// anchors, aliases, merges, tags, several documents.
type tree struct {
	env      Lookup
	problems document.Problems
}

// readYAML parses a file's text. An empty one is an empty object.
func readYAML(text []byte, env Lookup) (*document.Node, document.Problems) {
	if len(text) > MaxFileBytes {
		return nil, document.Problems{{Text: fmt.Sprintf("is longer than %d bytes", MaxFileBytes)}}
	}
	if bad := invalid(text); bad >= 0 {
		return nil, document.Problems{{Line: 1 + bytes.Count(text[:bad], []byte("\n")), Text: "is not valid UTF-8"}}
	}
	t := &tree{env: env}
	root, err := t.read(string(text))
	if err != nil {
		return nil, append(t.problems, syntaxProblem(err))
	}
	return root, t.problems
}

// read parses and converts. The library has panicked on malformed input before,
// and a file that is being edited must never end a running server.
func (t *tree) read(text string) (root *document.Node, err error) {
	defer func() {
		if recover() != nil {
			root, err = nil, errors.New("malformed")
		}
	}()
	tokens := lexer.Tokenize(text)
	if problem := tooGreat(tokens); problem != nil {
		t.problems = append(t.problems, *problem)
		return nil, nil
	}
	file, err := yamlparser.Parse(tokens, 0, yamlparser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	root = &document.Node{Kind: document.Object, Line: 1}
	for i, doc := range file.Docs {
		if i > 0 {
			at := 0
			if doc.Start != nil {
				at = doc.Start.Position.Line
			}
			t.fail("", at, "is more than one document: remove the ---")
			break
		}
		if !empty(doc.Body) {
			root = t.node("", doc.Body, 0)
		}
	}
	return root, nil
}

// empty: a document of nothing but comments declares nothing.
func empty(body ast.Node) bool {
	switch body.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode:
		return true
	default:
		return false
	}
}

func invalid(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func syntaxProblem(err error) document.Problem {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil && syntax.GetToken().Position != nil {
		return document.Problem{Line: syntax.GetToken().Position.Line, Text: "is not valid YAML: " + syntax.GetMessage()}
	}
	return document.Problem{Text: "is not valid YAML"}
}

// tooGreat finds nesting and width past the bounds before the parser does.
func tooGreat(tokens token.Tokens) *document.Problem {
	flow, entries, entriesLine := 0, 0, 0
	width := map[int]int{} // keys by column, of the open block objects
	for _, tk := range tokens {
		at := tk.Position
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			if at.Line != entriesLine {
				entries, entriesLine = 0, at.Line
			}
			entries++
			clear(width)
		case token.MappingValueType:
			key := tk.Prev
			if flow > 0 || key == nil {
				break
			}
			column := key.Position.Column
			if width[column]++; width[column] > maxWidth {
				return &document.Problem{Line: at.Line, Text: fmt.Sprintf("an object has more than %d fields", maxWidth)}
			}
			for other := range width {
				if other > column {
					delete(width, other)
				}
			}
			if len(width) > document.MaxDepth {
				return tooDeep(at.Line)
			}
		default:
		}
		if flow > document.MaxDepth || entries > document.MaxDepth {
			return tooDeep(at.Line)
		}
	}
	return nil
}

func tooDeep(line int) *document.Problem {
	return &document.Problem{Line: line, Text: fmt.Sprintf("is nested deeper than %d", document.MaxDepth)}
}

func (t *tree) fail(path string, line int, format string, args ...any) {
	t.problems = append(t.problems, document.Problem{Path: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// node converts one node; what cannot be is a null with a problem.
func (t *tree) node(path string, n ast.Node, depth int) *document.Node {
	at := line(n)
	if depth > document.MaxDepth {
		t.fail(path, at, "is nested deeper than %d", document.MaxDepth)
		return &document.Node{Line: at}
	}
	switch v := n.(type) {
	case nil, *ast.NullNode:
		return &document.Node{Line: at}
	case *ast.BoolNode:
		return &document.Node{Kind: document.Bool, Text: fmt.Sprint(v.Value), Line: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return &document.Node{Kind: document.Number, Text: n.GetToken().Value, Line: at}
	case *ast.StringNode:
		return t.text(path, v.Value, at)
	case *ast.LiteralNode:
		return t.text(path, v.Value.Value, at)
	case *ast.SequenceNode:
		list := &document.Node{Kind: document.Array, Line: at}
		for i, item := range v.Values {
			list.Items = append(list.Items, t.node(fmt.Sprintf("%s[%d]", path, i), item, depth+1))
		}
		return list
	case *ast.MappingNode:
		return t.object(path, v.Values, at, depth)
	case *ast.MappingValueNode:
		return t.object(path, []*ast.MappingValueNode{v}, at, depth)
	default:
		t.fail(path, at, "anchors, aliases and tags are not read: write the value itself")
		return &document.Node{Line: at}
	}
}

func (t *tree) object(path string, values []*ast.MappingValueNode, at, depth int) *document.Node {
	o := &document.Node{Kind: document.Object, Line: at}
	seen := map[string]int{}
	for _, value := range values {
		keyLine := line(value.Key)
		name, ok := keyName(value.Key)
		if !ok {
			t.fail(path, keyLine, "a field's name must be a plain word")
			continue
		}
		below := document.Join(path, name)
		if first, twice := seen[name]; twice {
			t.fail(below, keyLine, "stands twice: first on line %d", first)
			continue
		}
		seen[name] = keyLine
		child := t.node(below, value.Value, depth+1)
		if child.Kind == document.Object || child.Kind == document.Array {
			child.Line = keyLine
		}
		o.Members = append(o.Members, document.Member{Name: name, Line: keyLine, Value: child})
	}
	return o
}

func keyName(key ast.MapKeyNode) (string, bool) {
	switch v := key.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.BoolNode:
		return v.GetToken().Value, true
	default:
		return "", false
	}
}

// text expands the variables in a string. It happens after YAML is read, so
// that no variable's value can change the structure.
func (t *tree) text(path, text string, at int) *document.Node {
	n := &document.Node{Kind: document.String, Line: at}
	expanded, used, err := expand(text, t.env)
	if err != nil {
		t.fail(path, at, "%v", err)
	}
	n.Text, n.Environment = expanded, used
	return n
}

// expand replaces ${NAME} by the variable's value. $${ stands for a literal ${,
// and every other dollar for itself.
func expand(text string, env Lookup) (expanded string, used bool, err error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), used, nil
		}
		if literal, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(literal + "${")
			text = rest
			continue
		}
		out.WriteString(before)
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !variable(name) {
			return "", false, errors.New("${ must be followed by a variable's name and }: write $${ for a literal ${")
		}
		value, ok := env(name)
		if !ok {
			return "", false, fmt.Errorf("the environment has no variable %s: set it", name)
		}
		out.WriteString(value)
		text, used = after, true
	}
}

func variable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}
