#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stores.sh [whole] shows that PostgreSQL, which the tests start themselves, keeps
# every promise that the embedded store keeps: the store contract; every behaviour
# test of the program and of its administration; and the limits once more where
# four programs on one database take the requests in turn.
#
# The latter is a choice: who is admitted by each family of limits, and what a
# change decides. `whole` (make test-postgres) takes all that more than one program
# can have.
set -euo pipefail
cd "$(dirname "$0")/.."
whole=${1:-}
[[ $whole == whole ]] || . scripts/scratch.sh

# Always on PostgreSQL, so in the stage `unit` already: by what they call.
unit=$(awk '/^func Test/ {name = $2; sub(/\(.*/, "", name)} /^}/ {name = ""}
	name && /newSharedWorld\(|database\.[A-Z]/ {print "^" name "$"}' internal/app/*_test.go | sort -u | paste -sd'|')

# One program's own: its bucket (RAT-6), its spool and how it stops, the file of an
# embedded store, what it learned of a provider, what it measures and does by
# itself, and what the program that answered owes at once, others within 100 ms
# (RES-11).
own='TheProcesses|AKeyIsShownEveryLimit|OutageOfTheStore|AStopInAnOutage|ASpool|AStoreThatCannotBeOpened|RefusesToBeAskedForUsage'
own+='|TheRetentionRunsByItself|AProgramThatSlept|WhoHasReadTheEnd'

# Requests and tokens a minute, slots; rules; budgets of every scope and window;
# caps; funds; users; model policies and keys.
families='AVolley|ASlotAlone|AWorkspacesSlots|AbortsLeakNoSlot|BothLayersApply|TokensOfALimit'
families+='|ATokenRuleIsOne|AnEdgeDoesNotDouble|AModelsRuleCounts'
families+='|AHardBudget|FiftyUsers|NestedBudgets|ManyShrinking|AMoneyBudget|TheOverrunOfABudget|AProvidersBudget|PlansCount|AWarningIsAnnouncedOnce'
families+='|ADayCap|ASpentCap|TrailingCaps|ACapThatIsSetLater|ChangingTheZone'
families+='|AHeldBalance|PrepaidFunds|RunningRequestsMaySettle|NoSettlementIsLost'
families+='|MaxUsers|AnAliasOfAnotherModel|AKeyThatIsDisabled|ARotatedKeys|WithoutAGrace|ARotationKeeps|OneCauseHasOneStatus'

# A world for each of some three hundred pairs of door and bar, which no store sees
# the difference of: with `whole` alone.
doors='^(TestNoRouteToAProviderSkipsAnyCheck|TestEveryDoorEndingAndLimitAgreeWithTheBill)$'

on=(env WEIR_TEST_STORE=postgres)
status=0
# Random histories for each of two ways to reach the server, for each property.
checks=30
[[ $whole != whole ]] || checks=200
go test -vet=off -timeout 30m ./internal/store/postgres -rapid.checks="$checks" || status=1
if [[ $whole == whole ]]; then
	"${on[@]}" go test -vet=off -timeout 30m ./internal/app ./internal/admin || status=1
	"${on[@]}" WEIR_TEST_REPLICAS=4 go test -vet=off -timeout 30m -skip "$own|$unit|TestEveryDoorEnding" ./internal/app || status=1
else
	"${on[@]}" go test -vet=off -timeout 10m -skip "$unit|$doors" ./internal/app ./internal/admin || status=1
	"${on[@]}" WEIR_TEST_REPLICAS=4 go test -vet=off -timeout 10m -run "$families" -skip "$own|$unit" ./internal/app || status=1
fi
exit "$status"
