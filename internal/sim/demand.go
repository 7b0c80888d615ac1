// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// demand is one limit that must stand in a request's operation, said a second
// time from what is declared: nothing here is compiled by package limit.
type demand struct {
	limit           string
	epoch           uint32
	subject, marker string
	kind            ledger.Kind
	mode            ledger.Mode
	wants, charges  ledger.Metric
	amount, credit  int64
	span            int32
	window          string
	skip            bool
	warnings        string
	code            fault.Code
	combination     string // of a budget, for the tally; not compared
}

// standing is what a check says of itself, in the same words.
func standing(c *ledger.Check) demand {
	d := demand{
		limit: c.Counter.Limit, epoch: c.Counter.Epoch, subject: c.Counter.Subject, marker: c.Marker.Subject, kind: c.Kind, mode: c.Mode,
		wants: c.Wants, charges: c.Charges, amount: c.Amount, credit: c.Credit, span: c.Span, skip: c.SkipMissing, code: c.Code,
	}
	switch c.Kind {
	case ledger.KindFixed:
		d.window = fmt.Sprint(c.Window.Length, c.Window.Period)
		if c.Window.Zone != nil {
			d.window += c.Window.Zone.String()
		}
	case ledger.KindSliding:
		d.window = fmt.Sprint(c.Window.Length)
	case ledger.KindDays:
		d.window = c.Zone.String()
	default:
	}
	if len(c.WarnPercent) > 0 {
		d.warnings = fmt.Sprintf("%d", c.WarnPercent)
	}
	return d
}

// party is whose request it is.
type party struct {
	c     *configuration
	key   *tenant.Key
	user  string
	named bool
	tags  []string
}

func (q *request) party(c *configuration) party {
	p := party{c: c, key: c.keys[q.Key], tags: tags(q.Tags)}
	p.user = p.key.User
	if p.key.AttributeUsers != "" && q.User > 0 {
		p.user, p.named = userName(q.User), true
	}
	return p
}

// demands are the limits of a request in the published order (SPEC 2): all
// models', and those of one candidate's model and provider.
func (q *request) demands(c *configuration) (common, own []demand) {
	p := q.party(c)
	common = append(p.identity(), p.funds())
	if code := q.policy(p); code != "" {
		common = append(common, demand{kind: ledger.KindPolicy, mode: ledger.Observe, code: code})
	}
	common = append(common, p.caps()...)
	all, narrowed := p.budgets(q.name)
	common = append(common, all...)
	common = append(common, p.runtime()...)
	rules, ofModel := p.rules(q.name)
	return append(common, rules...), append(narrowed, ofModel...)
}

func (p party) identity() (list []demand) {
	if p.key.Disabled || p.key.Plan != "" && p.c.plan(p.key.Plan) == nil {
		list = append(list, demand{kind: ledger.KindPolicy, mode: ledger.Observe, code: fault.APIKeyInactive})
	}
	if p.named {
		list = append(list, demand{
			limit: "users", marker: p.user, kind: ledger.KindRoster, mode: ledger.Take, wants: ledger.Requests,
			amount: p.c.workspace().MaxUsers, code: fault.UserLimitReached,
		})
	}
	return list
}

func (p party) funds() demand {
	d := demand{
		limit: "funds", kind: ledger.KindFunds, wants: ledger.Spend, charges: ledger.Spend,
		credit: int64(p.c.workspace().CreditLine), code: fault.InsufficientBalance,
	}
	d.mode = map[string]ledger.Mode{tenant.Open: ledger.Track, tenant.Prepaid: ledger.Observe, tenant.PrepaidHold: ledger.Reserve}[p.c.workspace().Funds]
	return d
}

// policy is check 3, as the scripts can break it.
func (q *request) policy(p party) fault.Code {
	plan, model := p.c.plan(p.key.Plan), modelOf(q.name)
	switch {
	case plan != nil && plan.AllowedModels != nil && (model < 0 || !slices.Contains(*plan.AllowedModels, modelName(model)) && !slices.Contains(*plan.AllowedModels, modelName(q.name))):
		return fault.ModelNotAllowed
	case model < 0:
		return fault.ModelNotFound
	case plan != nil && plan.MaxOutputTokens != nil && q.OutputBound > *plan.MaxOutputTokens:
		return fault.MaxOutputTokensExceeded
	default:
		return ""
	}
}

func (p party) caps() (list []demand) {
	zone := p.c.workspace().Zone
	if zone == "" {
		zone = "UTC"
	}
	d := demand{
		limit: "days", subject: p.key.ID, kind: ledger.KindDays, mode: ledger.Observe, wants: ledger.Spend, charges: ledger.Spend, window: zone,
	}
	for _, cap := range [...]struct {
		amount int64
		span   int32
		code   fault.Code
	}{
		{int64(*p.key.Caps.Day), 1, fault.DayLimitReached},
		{int64(*p.key.Caps.SevenDay), 7, fault.SevenDayLimitReached},
		{int64(*p.key.Caps.ThirtyDay), 30, fault.ThirtyDayLimitReached},
	} {
		if cap.amount > 0 {
			d.amount, d.span, d.code = cap.amount, cap.span, cap.code
			list = append(list, d)
		}
	}
	if len(list) == 0 { // kept all the same (BUD-8)
		d.mode, d.span, d.code = ledger.Track, 1, fault.DayLimitReached
		list = append(list, d)
	}
	return list
}

// runtime is the key's layer, then the workspace's (RUN-4).
func (p party) runtime() (list []demand) {
	for _, layer := range [...]struct {
		name, subject string
		limits        tenant.RuntimeLimits
		codes         [3]fault.Code
	}{
		{"key", p.key.ID, p.key.Limits, [3]fault.Code{fault.APIKeyRPMExceeded, fault.APIKeyTPMExceeded, fault.APIKeyConcurrencyExceeded}},
		{"workspace", "", p.c.workspace().Limits, [3]fault.Code{fault.WorkspaceRPMExceeded, fault.WorkspaceTPMExceeded, fault.WorkspaceConcurrencyExceeded}},
	} {
		tpm := ledger.Tokens
		if counted := layer.limits.CountCached; counted != nil && !*counted {
			tpm = ledger.Uncached
		}
		for i, d := range [...]demand{
			{limit: ".rpm", kind: ledger.KindBucket, wants: ledger.Requests, amount: *layer.limits.RPM},
			{limit: ".tpm", kind: ledger.KindBucket, wants: ledger.Input, charges: tpm, amount: *layer.limits.TPM},
			{limit: ".concurrency", kind: ledger.KindGauge, wants: ledger.Slots, amount: *layer.limits.Concurrency},
		} {
			if d.amount > 0 {
				d.limit, d.subject, d.mode, d.code = layer.name+d.limit, layer.subject, ledger.Take, layer.codes[i]
				list = append(list, d)
			}
		}
	}
	return list
}

// member tells whom a scope means for this request, and whose counter that is;
// ok is false when the request has nobody there.
func (p party) member(scope string) (declared, counted string, ok bool) {
	one := func(name string) (string, string, bool) { return name, name, name != "" }
	switch scope {
	case "key", "api_key":
		return one(p.key.ID)
	case "plan":
		plan := p.c.plan(p.key.Plan)
		if plan == nil {
			return "", "", false
		}
		return plan.ID, p.key.ID, true
	case "user":
		return one(p.user)
	case "team":
		return one(p.key.Team)
	case "project":
		return one(p.key.Project)
	default: // org
		return "", "", true
	}
}

// ordered is a demand with what it is sorted by among those of its scope (ORD-2).
type ordered struct {
	demand
	length   int64
	name     string
	narrowed bool
}

func inOrder(list []ordered) []ordered {
	slices.SortStableFunc(list, func(x, y ordered) int {
		return cmp.Or(cmp.Compare(x.length, y.length), cmp.Compare(x.name, y.name), cmp.Compare(x.limit, y.limit))
	})
	return list
}

func parted(list []ordered) (all, narrowed []demand) {
	for _, o := range list {
		if o.narrowed {
			narrowed = append(narrowed, o.demand)
		} else {
			all = append(all, o.demand)
		}
	}
	return all, narrowed
}

// budgets are those of a request for a model, the narrowed ones apart.
func (p party) budgets(name int) (all, narrowed []demand) {
	var list []ordered
	for _, scope := range budget.Scopes() {
		var ofScope []ordered
		declared, counted, ok := p.member(string(scope))
		for i := range p.c.budgets {
			b := &p.c.budgets[i]
			if b.Scope == scope && ok && (b.Subject == "" || b.Subject == declared) && bears(b.Model, b.Provider, name) {
				ofScope = append(ofScope, b.demand(counted))
			}
		}
		list = append(list, inOrder(ofScope)...)
	}
	return parted(list)
}

// bears tells whether a limit on a model or provider is asked by a request that
// names a model.
func bears(model, provider string, name int) bool {
	n := modelOf(name)
	switch {
	case model != "":
		return n >= 0 && (model == modelName(n) || model == modelName(aliasOfDear) && n == dearModel)
	case provider != "":
		return n >= 0 && provider == providerName(n)
	default:
		return true
	}
}

func (b *declaredBudget) demand(subject string) ordered {
	d := demand{
		limit: b.ID, epoch: b.serial, subject: subject, kind: ledger.KindFixed, amount: b.Limit, skip: b.SkipMissingUsage,
		wants: ledger.Spend, charges: ledger.Spend, code: fault.BudgetExceeded, combination: b.combination(),
	}
	d.mode = map[string]ledger.Mode{budget.Hard: ledger.Reserve, budget.Guard: ledger.Observe, budget.Soft: ledger.Track}[b.Enforcement]
	if b.Metric == budget.Tokens {
		d.wants, d.charges = ledger.Tokens, ledger.Tokens
		if b.Uncached {
			d.charges = ledger.Uncached
		}
	}
	days := map[string]int64{budget.Day: 1, budget.Week: 7, budget.Month: 30}[b.Period]
	d.window = fmt.Sprint(b.WindowMicros, days2period(days))
	if b.Period != "" {
		d.window += cmp.Or(b.Zone, "UTC")
	}
	if len(b.WarnPercent) > 0 {
		d.warnings = fmt.Sprint(b.WarnPercent)
	}
	return ordered{demand: d, length: b.WindowMicros + days*24*hour, name: b.Name, narrowed: b.Model != "" || b.Provider != ""}
}

// days2period is the calendar period of a nominal length, as window numbers them.
func days2period(days int64) int {
	return map[int64]int{0: 0, 1: 1, 7: 2, 30: 3}[days]
}

// rules are those of a request for a model, the narrowed ones apart. Each tag
// counts for itself.
func (p party) rules(name int) (all, narrowed []demand) {
	var list []ordered
	add := func(kind rule.Subject, declared, counted string) {
		var ofKind []ordered
		for i := range p.c.rules {
			r := &p.c.rules[i]
			if r.Enabled && r.SubjectKind == kind && (r.SubjectID == "" || r.SubjectID == declared) && bears(r.Model, "", name) {
				ofKind = append(ofKind, r.demand(counted))
			}
		}
		list = append(list, inOrder(ofKind)...)
	}
	for _, kind := range rule.Subjects() {
		if kind == rule.SubjectTag {
			for _, tag := range p.tags {
				add(kind, tag, tag)
			}
			continue
		}
		if declared, counted, ok := p.member(string(kind)); ok {
			add(kind, declared, counted)
		}
	}
	return parted(list)
}

func (r *declaredRule) demand(subject string) ordered {
	d := demand{
		limit: r.ID, epoch: r.serial, subject: subject, kind: ledger.KindSliding, mode: ledger.Take, wants: ledger.Requests,
		amount: r.Limit, window: fmt.Sprint(r.WindowSeconds * second), code: fault.RateLimited,
	}
	if r.Metric == rule.Tokens {
		d.wants, d.charges = ledger.Tokens, ledger.Tokens
		if r.EstimateInput {
			d.wants = ledger.Input
		}
		if r.Uncached {
			d.charges = ledger.Uncached
		}
	}
	return ordered{demand: d, length: r.WindowSeconds * second, name: r.Name, narrowed: r.Model != ""}
}

// estimate is EST-1 to EST-3 and BUD-10 for the scripts' plain text: what is held
// and what a sweep charges.
func (q *request) estimate(c *configuration) (wants, worst ledger.Amounts) {
	model := modelOf(q.name)
	input, output := (q.TextBytes+2)/3+3+4, int64(modelTokens)
	plan := c.plan(c.keys[q.Key].Plan)
	if q.OutputBound > 0 {
		output = min(output, q.OutputBound)
	}
	if plan != nil && plan.MaxOutputTokens != nil {
		output = min(output, *plan.MaxOutputTokens)
	}
	if q.outputCap > 0 {
		output = min(output, q.outputCap)
	}
	held := output
	if most := c.workspace().HoldOutputTokens; most > 0 {
		held = min(held, most)
	}
	of := func(output int64) ledger.Amounts {
		in, _, out := rates(model)
		return ledger.Amounts{
			Spend: input*in + output*out, Tokens: input + output, Input: input, Requests: 1, Slots: 1, Uncached: input + output,
		}
	}
	return of(held), of(output)
}

// expect holds the operation that the product built against what is declared.
func (q *request) expect(plan *admit.Plan, c *configuration) {
	w := q.replica.world
	common, own := q.demands(c)
	var candidate ledger.Candidate
	if len(plan.Op.Candidates) > 0 {
		candidate = plan.Op.Candidates[0]
		if wants, worst := q.estimate(c); candidate.Wants != wants || candidate.Worst != worst {
			w.fail("a request is held at its estimate", "#%d: wants %+v of %+v, want %+v of %+v", q.number, candidate.Wants, candidate.Worst, wants, worst)
		}
	} else {
		own = nil
	}
	for _, list := range [2]struct {
		have []ledger.Check
		want []demand
	}{{plan.Op.Checks, common}, {candidate.Checks, own}} {
		if len(list.have) != len(list.want) {
			w.fail("every declared limit stands in the operation", "#%d: %d checks, want %d: %v, want %v", q.number, len(list.have), len(list.want), list.have, list.want)
			return
		}
		for i := range list.have {
			want := list.want[i]
			want.combination = ""
			if have := standing(&list.have[i]); have != want {
				w.fail("every declared limit stands in the operation", "#%d, check %d: %+v, want %+v", q.number, i, have, want)
			}
		}
	}
}
