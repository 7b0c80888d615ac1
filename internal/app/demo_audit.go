// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// DemoRun is what a demonstration found.
type DemoRun struct {
	// Charged requests were settled or swept, Refused ones neither.
	Charged, Refused int
	// Ledger is the sum of what was charged for settled requests, Bill what the
	// simulated provider served for them at its prices: nano-dollars.
	Ledger, Bill money.Nanos
	// Swept requests were a killed gateway's, and were charged SweptLedger, their
	// worst case; the provider's bill for them is SweptBill.
	Swept                  int
	SweptLedger, SweptBill money.Nanos
	// Late requests were sent after their key's first refusal by a cap, and admitted.
	Late int
	// Wrong requests were charged something else than they cost, or are in one of
	// the two books alone.
	Wrong int
	// Over: a budget was passed. Spared: no gateway was killed that should have been.
	Over, Spared bool
	// Differences is how many figures `verify` found wrong.
	Differences int
	// Balanced: the limit refused and held, and the books agree.
	Balanced bool
}

// priceOf prices an entry of the provider's bill apart from everything that the
// gateway computed: tokens times prices, rounded up once (MON-2).
func priceOf(e *simulator.Entry) money.Nanos {
	cost := new(big.Int).Mul(big.NewInt(e.Input), big.NewInt(demoInputNanos))
	cost.Add(cost, new(big.Int).Mul(big.NewInt(e.Output), big.NewInt(demoOutputNanos)))
	cost.Add(cost, big.NewInt(999_999))
	return money.Nanos(cost.Div(cost, big.NewInt(1_000_000)).Int64()) // some cents
}

// audit holds what the gateways booked against what the provider served.
func (d *demo) audit(ctx context.Context) (*DemoRun, error) {
	if d.first != nil {
		d.view.heading("The first refusal")
		explained, err := d.admin.RequestShow(ctx, admin.RequestShowRequest{ID: d.first.requestID})
		if err != nil {
			return nil, fmt.Errorf("explain the refusal: %w", err)
		}
		d.view.refusal(d.first, &explained)
	}
	phase := time.Now()
	run := &DemoRun{Refused: d.refusals, Late: d.late, Spared: d.fleet != nil && d.killed == nil}
	bill := d.provider.Bill()
	if err := d.compare(ctx, run, &bill); err != nil {
		return nil, err
	}
	total, err := d.total(ctx)
	if err != nil {
		return nil, err
	}
	view, err := d.keyState(ctx, demoCapped)
	if err != nil {
		return nil, err
	}
	run.Over = d.fleet != nil && amount(spent(view))+amount(held(view)) > d.view.cap
	verified, err := d.admin.Verify(ctx, admin.VerifyRequest{})
	if err != nil {
		return nil, fmt.Errorf("verify the books: %w", err)
	}
	run.Differences = len(verified.Differences)
	run.Balanced = d.first != nil && run.Late == 0 && !run.Over && !run.Spared && run.Ledger == run.Bill && run.Wrong == 0 &&
		total == run.Ledger+run.SweptLedger && run.Differences == 0 && verified.Balanced && len(d.answers) == d.Requests
	d.view.books(run, &bill, &verified, time.Since(phase))
	d.view.verdict(run, time.Since(d.began))
	return run, nil
}

// total is what the ledger's events come to.
func (d *demo) total(ctx context.Context) (money.Nanos, error) {
	usage, err := d.admin.Usage(ctx, admin.UsageRequest{By: "key"})
	if err != nil {
		return 0, fmt.Errorf("ask for the usage: %w", err)
	}
	total, err := money.ParseSignedUSD(usage.Total.Spend)
	if err != nil {
		return 0, fmt.Errorf("read the usage: %w", err)
	}
	return total, nil
}

// compare finds for every request of the call log what the provider served for it.
func (d *demo) compare(ctx context.Context, run *DemoRun, bill *simulator.Bill) error {
	served := make(map[string]*simulator.Entry, len(bill.Log))
	for i := range bill.Log {
		served[bill.Log[i].Agent] = &bill.Log[i]
	}
	run.Wrong += len(bill.Log) - len(served)
	err := d.eachRequest(ctx, "", func(r *admin.RequestSummary, spend money.Nanos) {
		cost, e := money.Nanos(0), served[r.ClientID]
		if e != nil {
			cost = priceOf(e)
		}
		switch r.Outcome {
		case "refused":
			return
		case "settled":
			run.Ledger += spend
			run.Bill += cost
			if e == nil || spend != cost {
				run.Wrong++
			}
		case "swept":
			run.Swept++
			run.SweptLedger += spend
			run.SweptBill += cost
			if spend < cost {
				run.Wrong++
			}
		default:
			run.Wrong++
		}
		run.Charged++
		delete(served, r.ClientID)
	})
	run.Wrong += len(served) // served and not booked
	return err
}

// demoAdmin is the admin API, reached as the command line reaches it.
type demoAdmin struct {
	*client.Client
	close func() error
}

func connectDemo(ctx context.Context, o Options) (*demoAdmin, error) {
	transport, closeFn, err := Connect(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("reach the admin API: %w", err)
	}
	return &demoAdmin{client.New(client.Options{Transport: transport}), closeFn}, nil
}

// createKey makes a key and returns its secret; dayCap "" is none.
func (a *demoAdmin) createKey(ctx context.Context, name, dayCap string) (secret string, err error) {
	body := admin.KeyFields{Name: admin.Some(name)}
	if dayCap != "" {
		body.Caps = admin.Some(admin.CapFields{Day: admin.Some(dayCap)})
	}
	key, err := a.KeyCreate(ctx, admin.KeyCreateRequest{Body: body})
	if err != nil {
		return "", err
	}
	return key.Secret, nil
}

// createBudget makes a hard budget of a key: a day's spend.
func (a *demoAdmin) createBudget(ctx context.Context, key, limitUSD string) error {
	_, err := a.BudgetCreate(ctx, admin.BudgetCreateRequest{Body: admin.BudgetFields{
		Name: admin.Some(key + " day"), Scope: admin.Some("key"), Subject: admin.Some(key), Metric: admin.Some("spend"),
		LimitUSD: admin.Some(limitUSD), Period: admin.Some("day"), Enforcement: admin.Some("hard"),
	}})
	return err
}
