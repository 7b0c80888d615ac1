// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/fault"
)

var update = flag.Bool("update", false, "rewrite docs/errors.md")

func TestThePageOfErrorsIsTheRegistry(t *testing.T) {
	const page = "../../docs/errors.md"
	if *update {
		if err := os.WriteFile(page, []byte(fault.Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), fault.Markdown()); diff != "" {
		t.Errorf("docs/errors.md differs; go test ./internal/fault -update (-page +registry):\n%s", diff)
	}
}

// declared reads the codes that the source declares.
func declared(t *testing.T) []fault.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "registry.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []fault.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for _, value := range spec.Values {
			text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, fault.Code(text))
		}
		return true
	})
	return codes
}

func TestEveryDeclaredCodeIsRegisteredOnceInOrder(t *testing.T) {
	var registered []fault.Code
	for _, info := range fault.All() {
		registered = append(registered, info.Code)
	}
	if diff := cmp.Diff(declared(t), registered); diff != "" {
		t.Errorf("(-declared +registered)\n%s", diff)
	}
	seen := map[fault.Code]bool{}
	for _, code := range registered {
		if seen[code] {
			t.Errorf("%s is registered twice", code)
		}
		seen[code] = true
	}
}

func TestEveryEntryIsWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, info := range fault.All() {
		if !name.MatchString(string(info.Code)) {
			t.Errorf("%q is no code", info.Code)
		}
		if info.Status < 400 || http.StatusText(info.Status) == "" {
			t.Errorf("%s has status %d", info.Code, info.Status)
		}
		if !strings.HasSuffix(info.Help, ".") || strings.ContainsAny(info.Help, "|\n") {
			t.Errorf("%s: help %q is not a line for a table", info.Code, info.Help)
		}
		if found, ok := fault.Lookup(info.Code); !ok || found != info {
			t.Errorf("%s is looked up as %+v", info.Code, found)
		}
		if failure := info.Status >= 500; failure && !info.Retryable {
			t.Errorf("%s is a failure of ours that may not be retried", info.Code)
		}
	}
	if info, ok := fault.Lookup("no_such_code"); ok {
		t.Errorf("an unknown code is %+v", info)
	}
}

// ORD-1: statuses and codes, in the published order.
func TestTheChecksRefuseAsPublished(t *testing.T) {
	want := []string{
		"401 invalid_api_key", "403 apikey_inactive", "402 insufficient_balance",
		"404 model_not_found", "400 model_not_allowed", "400 model_unpriced", "400 max_output_tokens_exceeded",
		"402 day_limit_reached", "402 seven_day_limit_reached", "402 thirty_day_limit_reached", "429 budget_exceeded",
		"429 api_key_rpm_exceeded", "429 api_key_tpm_exceeded", "429 api_key_concurrency_exceeded",
		"429 workspace_rpm_exceeded", "429 workspace_tpm_exceeded", "429 workspace_concurrency_exceeded", "429 rate_limited",
	}
	var got []string
	for _, info := range fault.All()[:len(want)] {
		got = append(got, fmt.Sprintf("%d %s", info.Status, info.Code))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// DIS-9, RES-8, ERR-5, KEY-7, RAT-7, ADM-1, ADM-5.
func TestOtherCodesHaveTheirStatus(t *testing.T) {
	for code, want := range map[fault.Code]int{
		"upstream_unreachable": 502, "upstream_invalid": 502, "upstream_timeout": 504, "no_candidate": 503, "service_unavailable": 503,
		"internal_error": 500, "invalid_request": 400, "request_too_large": 413, "not_found": 404, "method_not_allowed": 405,
		"user_required": 400, "user_limit_reached": 400, "too_many_rules": 400, "invalid_admin_token": 401, "forbidden": 403,
		"conflict": 409, "declared_in_file": 409, "idempotency_key_reused": 409, "gone": 410,
	} {
		if info, ok := fault.Lookup(code); !ok || info.Status != want {
			t.Errorf("%s: %d, %t; want %d", code, info.Status, ok, want)
		}
	}
}

// ERR-1.
func TestTheTypeFollowsTheStatus(t *testing.T) {
	for status, want := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		405: "invalid_request_error", 409: "invalid_request_error", 410: "invalid_request_error", 413: "request_too_large",
		429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "api_error", 504: "api_error", 0: "api_error",
	} {
		if got := fault.TypeFor(status); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

// ERR-2, ERR-3: what a minute of waiting does not cure asks for no retry.
func TestANewFaultKnowsWhetherToRetry(t *testing.T) {
	for _, info := range fault.All() {
		f := fault.New(info.Code, "%d of %s", 3, "4")
		if f.Message != "3 of 4" || f.Error() != string(info.Code)+": 3 of 4" || f.HTTPStatus() != info.Status {
			t.Errorf("%s: %q, %d", info.Code, f.Error(), f.HTTPStatus())
		}
		if f.NoRetry == info.Retryable {
			t.Errorf("%s: no retry %t, retryable %t", info.Code, f.NoRetry, info.Retryable)
		}
		if after := f.RetryAfterSeconds; (after == 2) != (info.Status == 503) || after != 0 && after != 2 {
			t.Errorf("%s: Retry-After %d", info.Code, after)
		}
		if (info.Status == 402 || info.Code == fault.BudgetExceeded) && !f.NoRetry {
			t.Errorf("%s is about money that is spent, and asks for a retry", info.Code)
		}
	}
}

// ERR-7.
func TestAFaultsOwnStatusComesFirst(t *testing.T) {
	if got := (&fault.Fault{Code: fault.BudgetExceeded, Status: 402}).HTTPStatus(); got != 402 {
		t.Errorf("status %d", got)
	}
	if got := (&fault.Fault{Code: "no_such_code"}).HTTPStatus(); got != 500 {
		t.Errorf("status of an unknown code: %d", got)
	}
}

func TestAFaultIsFoundInAChainOfErrors(t *testing.T) {
	wrapped := fmt.Errorf("admit: %w", fault.New(fault.RateLimited, "rule %q is full", "interactive"))
	var f *fault.Fault
	if !errors.As(wrapped, &f) || f.Code != fault.RateLimited {
		t.Errorf("found %v", f)
	}
}

// ERR-1.
func TestDetailsLeaveOutWhatDoesNotApply(t *testing.T) {
	for _, c := range []struct {
		details fault.Details
		want    string
	}{
		{fault.Details{}, `{"retryable":false}`},
		{
			fault.Details{LimitID: "b1", Scope: "org", Metric: "spend", Window: "month", Amount: "500", Used: "499.5", Held: "0.5", Wanted: "0.01", ResetsAt: "2026-12-01T00:00:00Z", Reason: "held", Retryable: true},
			`{"limit_id":"b1","scope":"org","metric":"spend","window":"month","amount":"500","used":"499.5","held":"0.5","wanted":"0.01","resets_at":"2026-12-01T00:00:00Z","reason":"held","retryable":true}`,
		},
	} {
		got, err := json.Marshal(c.details)
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
}
