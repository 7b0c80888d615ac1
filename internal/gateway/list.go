// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
)

// modelObject is a model as OpenAI and Anthropic list it: the members of the one do
// not meet those of the other, so one list serves the clients of both.
type modelObject struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Type        string `json:"type"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

type modelList struct {
	Object  string        `json:"object"`
	Data    []modelObject `json:"data"`
	HasMore bool          `json:"has_more"`
	FirstID *string       `json:"first_id"`
	LastID  *string       `json:"last_id"`
}

// epoch is when every model was made, as far as anybody here knows.
const epoch = "1970-01-01T00:00:00Z"

func listed(name string) modelObject {
	return modelObject{ID: name, Object: "model", OwnedBy: "weir", Type: "model", DisplayName: name, CreatedAt: epoch}
}

// asksAsGemini tells that a key came as Google's clients send it. Theirs ask for
// models under /v1 too, where OpenAI's and Anthropic's do.
func asksAsGemini(r *http.Request) bool { return r.Header.Get("X-Goog-Api-Key") != "" }

// listModels shows what the key may call (KEY-5).
func (g *Gateway) listModels(w http.ResponseWriter, r *http.Request) {
	if asksAsGemini(r) {
		g.listGeminiModels(w, r)
		return
	}
	g.inform(w, r, func(x *exchange) (any, *fault.Fault) {
		list := modelList{Object: "list", Data: []modelObject{}}
		for _, name := range x.snapshot.Models(x.key) {
			list.Data = append(list.Data, listed(name))
		}
		if n := len(list.Data); n > 0 {
			list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
		}
		return list, nil
	})
}

func (g *Gateway) showModel(w http.ResponseWriter, r *http.Request) {
	if asksAsGemini(r) {
		g.showGeminiModel(w, r)
		return
	}
	g.inform(w, r, func(x *exchange) (any, *fault.Fault) {
		name := strings.TrimPrefix(r.URL.Path, "/v1/models/")
		if !slices.Contains(x.snapshot.Models(x.key), name) {
			return nil, unknownModel(name, "/v1/models")
		}
		return listed(name), nil
	})
}

func unknownModel(name, list string) *fault.Fault {
	return fault.New(fault.ModelNotFound, "model %q does not exist here or may not be called with this key; GET %s lists what may", name, list)
}

// geminiModel is a model as Gemini lists it.
type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

const geminiModels = "/v1beta/models"

func listedForGemini(name string) geminiModel {
	return geminiModel{
		Name: "models/" + name, DisplayName: name,
		Methods: []string{"generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents"},
	}
}

// listGeminiModels shows what the key may call at the doors of the protocol.
func (g *Gateway) listGeminiModels(w http.ResponseWriter, r *http.Request) {
	g.inform(w, r, func(x *exchange) (any, *fault.Fault) {
		list := struct {
			Models []geminiModel `json:"models"`
		}{[]geminiModel{}}
		for _, name := range x.snapshot.ModelsOf(x.key, call.GeminiModels.Protocol()) {
			list.Models = append(list.Models, listedForGemini(name))
		}
		return list, nil
	})
}

func (g *Gateway) showGeminiModel(w http.ResponseWriter, r *http.Request) {
	g.inform(w, r, func(x *exchange) (any, *fault.Fault) {
		_, name, _ := strings.Cut(r.URL.Path, "/models/")
		if !slices.Contains(x.snapshot.ModelsOf(x.key, call.GeminiModels.Protocol()), name) {
			return nil, unknownModel(name, geminiModels)
		}
		return listedForGemini(name), nil
	})
}
