// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weirhq/weir/internal/fault"
	pricelist "github.com/weirhq/weir/internal/price/feed"
)

const (
	// maxBodyBytes bounds the body of an admin request.
	maxBodyBytes = 1 << 20
	// WorkspaceHeader names the workspace that a system token means.
	WorkspaceHeader = "X-Weir-Workspace"
	requestIDHeader = "X-Weir-Request-Id"
)

// bodyBound bounds the body of an operation: a price list is larger than what
// people write.
func bodyBound(op Op) int64 {
	if op == OpPriceImport {
		return pricelist.MaxBytes
	}
	return maxBodyBytes
}

// Handler serves the operations below Base, and their description at
// Base/openapi.json. Who sends a request is what the given function says: a
// token's owner (ByToken), or whoever can open the socket (BySocket).
func Handler(s *Service, who Authenticate) (http.Handler, error) {
	mux := http.NewServeMux()
	document, err := json.MarshalIndent(describe(s, mux).OpenAPI(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	document = append(document, '\n')
	mux.HandleFunc("GET "+Base+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // a client that has gone misses nothing
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { noRoute(mux, w, r) })
	return s.guard(who, mux), nil
}

// describe registers every operation with its types.
func describe(s *Service, mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("Weir administration", "1")
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no $schema members in answers
	config.Formats = map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()}
	config.RejectUnknownQueryParameters = true
	config.Transformers = []huma.Transformer{plainError}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	config.Security = []map[string][]string{{"token": {}}}
	api := humago.New(mux, config)
	api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) { next(badRequest{ctx}) })
	bindAll(api, s)
	// The framework's own error type is never sent.
	for _, name := range []string{"ErrorModel", "ErrorDetail"} {
		delete(api.OpenAPI().Components.Schemas.Map(), name)
	}
	return api
}

func jsonFormat() huma.Format {
	return huma.Format{
		Marshal: func(w io.Writer, v any) error {
			encoder := json.NewEncoder(w)
			encoder.SetEscapeHTML(false)
			return encoder.Encode(v)
		},
		Unmarshal: json.Unmarshal,
	}
}

func bindAll(api huma.API, s *Service) {
	bind(api, OpKeyList, s.KeyList)
	bind(api, OpKeyCreate, s.KeyCreate)
	bind(api, OpKeyShow, s.KeyShow)
	bind(api, OpKeyUpdate, s.KeyUpdate)
	bind(api, OpKeyDelete, s.KeyDelete)
	bind(api, OpKeyRotate, s.KeyRotate)
	bind(api, OpKeyDisable, s.KeyDisable)
	bind(api, OpKeyEnable, s.KeyEnable)
	bind(api, OpKeyLimits, s.KeyLimits)
	bind(api, OpKeyReset, s.KeyReset)
	bind(api, OpWorkspaceShow, s.WorkspaceShow)
	bind(api, OpWorkspaceUpdate, s.WorkspaceUpdate)
	bind(api, OpWorkspaceList, s.WorkspaceList)
	bind(api, OpFundsShow, s.FundsShow)
	bind(api, OpFundsEntries, s.FundsEntries)
	bind(api, OpFundsBook, s.FundsBook)
	bind(api, OpUsage, s.Usage)
	bind(api, OpRequestList, s.RequestList)
	bind(api, OpRequestShow, s.RequestShow)
	bind(api, OpRequestAdjust, s.RequestAdjust)
	bind(api, OpVerify, s.Verify)
	bind(api, OpBackup, s.Backup)
	bind(api, OpReplicaList, s.ReplicaList)
	bind(api, OpReplicaForget, s.ReplicaForget)
	bind(api, OpPriceList, s.PriceList)
	bind(api, OpPriceShow, s.PriceShow)
	bind(api, OpPriceCost, s.PriceCost)
	bind(api, OpPriceImport, s.PriceImport)
	bind(api, OpModelList, s.ModelList)
	bind(api, OpModelShow, s.ModelShow)
	bind(api, OpProviderList, s.ProviderList)
	bind(api, OpProviderShow, s.ProviderShow)
	bind(api, OpBudgetList, s.BudgetList)
	bind(api, OpBudgetCreate, s.BudgetCreate)
	bind(api, OpBudgetUpdate, s.BudgetUpdate)
	bind(api, OpBudgetDelete, s.BudgetDelete)
	bind(api, OpBudgetRaise, s.BudgetRaise)
	bind(api, OpBudgetReset, s.BudgetReset)
	bind(api, OpRateLimitList, s.RateLimitList)
	bind(api, OpRateLimitCreate, s.RateLimitCreate)
	bind(api, OpRateLimitUpdate, s.RateLimitUpdate)
	bind(api, OpRateLimitDelete, s.RateLimitDelete)
	bind(api, OpRateLimitReset, s.RateLimitReset)
	bind(api, OpPlanList, s.PlanList)
	bind(api, OpPlanCreate, s.PlanCreate)
	bind(api, OpPlanShow, s.PlanShow)
	bind(api, OpPlanUpdate, s.PlanUpdate)
	bind(api, OpPlanDelete, s.PlanDelete)
	bind(api, OpAuditList, s.AuditList)
	bind(api, OpStatus, s.Status)
}

type output[T any] struct{ Body T }

// bind serves one operation where its line of the table says. Bodies are not
// validated here: the strict readers of the domain do, for every caller.
func bind[Request, Answer any](api huma.API, op Op, do func(context.Context, Actor, Request) (Answer, error)) {
	line, _ := Lookup(op)
	group, _, _ := strings.Cut(string(op), ".")
	schemas := api.OpenAPI().Components.Schemas
	huma.Register(api, huma.Operation{
		OperationID: string(op), Method: line.Method, Path: Base + line.Path, Summary: line.Summary, Tags: []string{group},
		Description: "Needs the role " + string(line.Least) + ".", MaxBodyBytes: bodyBound(op), SkipValidateBody: true,
		Responses: map[string]*huma.Response{"default": {
			Description: "An error",
			Content: map[string]*huma.MediaType{
				"application/json": {Schema: schemas.Schema(reflect.TypeFor[ErrorAnswer](), true, "")},
			},
		}},
	}, func(ctx context.Context, in *Request) (*output[Answer], error) {
		out, err := do(ctx, actorOf(ctx), *in)
		if err != nil {
			return nil, refusal(ctx, err)
		}
		return &output[Answer]{Body: out}, nil
	})
}

type actorKey struct{}

// caller is who sent a request, and the id that its answer carries.
type caller struct {
	actor Actor
	id    string
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(actorKey{}).(caller)
	return c
}

func actorOf(ctx context.Context) Actor { return callerOf(ctx).actor }

// guard is before every route: it names the request, authenticates it, settles
// its workspace, and takes JSON alone.
func (s *Service) guard(who Authenticate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c caller
		if id, err := s.newRequestID(s.Clock.Now()); err == nil {
			c.id = id.String()
		}
		w.Header().Set(requestIDHeader, c.id)
		w.Header().Set("Cache-Control", "no-store") // answers may hold a new secret
		actor, err := who(r)
		if err == nil {
			c.actor, err = inWorkspace(actor, r.Header.Get(WorkspaceHeader))
		}
		if err == nil {
			err = onlyJSON(r)
		}
		ctx := context.WithValue(r.Context(), actorKey{}, c)
		if err != nil {
			writeError(w, refusal(ctx, err))
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// inWorkspace lets a system token name a workspace; another token is of its
// own, and every other is as if there were none (SPEC ADM-1).
func inWorkspace(a Actor, name string) (Actor, error) {
	switch {
	case a.Role == System:
		a.Workspace = name
	case name != "" && name != a.Workspace:
		return a, fault.New(fault.NotFound, "there is no such workspace")
	}
	return a, nil
}

func onlyJSON(r *http.Request) error {
	sent := r.Header.Get("Content-Type")
	if sent == "" || r.ContentLength == 0 {
		return nil
	}
	if media, _, err := mime.ParseMediaType(sent); err != nil || media != "application/json" {
		f := fault.New(fault.InvalidRequest, "send application/json")
		f.Status, f.Param = http.StatusUnsupportedMediaType, "Content-Type"
		return f
	}
	return nil
}

// noRoute answers a path that is no operation's, or not with this method.
func noRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeError(w, refusal(r.Context(), fault.New(fault.MethodNotAllowed, "this path has %s", strings.Join(allowed, ", "))))
		return
	}
	writeError(w, refusal(r.Context(), fault.New(fault.NotFound, "there is no such path; %s/openapi.json lists them", Base)))
}
