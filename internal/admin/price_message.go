// SPDX-License-Identifier: Apache-2.0

package admin

import "encoding/json"

// PriceListRequest asks for prices: those of the workspace's models, then what
// was imported, then the built-in catalogue's.
type PriceListRequest struct {
	Provider string `query:"provider" doc:"the catalogue's name of a provider"`
	Contains string `query:"contains" doc:"a part of the model's name"`
	Models   bool   `query:"models" doc:"the workspace's own models only"`
	Cursor   string `query:"cursor"`
	Limit    int    `query:"limit" doc:"1 to 1000, 100 when left out"`
}

// PriceListAnswer is one page; an empty NextCursor ends the list.
type PriceListAnswer struct {
	Catalogue  string       `json:"catalogue" doc:"source of the built-in prices"`
	Date       string       `json:"date" doc:"of the built-in prices"`
	Prices     []PriceEntry `json:"prices"`
	NextCursor string       `json:"next_cursor,omitempty"`
}

// PriceEntry is the price of a model. Configured ones are models of the
// workspace, the others were imported or are the catalogue's.
type PriceEntry struct {
	Provider      string     `json:"provider"`
	Model         string     `json:"model"`
	Configured    bool       `json:"configured"`
	ContextTokens int64      `json:"context_tokens,omitempty"`
	Omitted       []string   `json:"omitted,omitempty" doc:"prices of the source that are not applied"`
	Price         *PriceView `json:"price,omitempty" doc:"absent: unpriced"`
}

// PriceShowRequest names a model of the workspace, or with Provider one of what
// was imported or of the catalogue.
type PriceShowRequest struct {
	Model    string `query:"model" required:"true"`
	Provider string `query:"provider"`
}

// PriceView is a price row: dollars per million tokens; what begins with per_ in
// dollars for one.
type PriceView struct {
	ID              string `json:"id"`
	Model           string `json:"model"`
	Source          string `json:"source" doc:"override, imported or built-in"`
	Date            string `json:"date,omitempty"`
	List            string `json:"list,omitempty" doc:"the list that an imported row was read from"`
	StaleSince      string `json:"stale_since,omitempty" doc:"the day since which that list has it no more"`
	ValidFromMicros int64  `json:"valid_from_micros,omitempty"`
	Unit            string `json:"unit"`
	Confirm         bool   `json:"confirm,omitempty"`
	Free            bool   `json:"free,omitempty"`
	TokenPrices
	PerRequest      string                 `json:"per_request,omitempty"`
	PerSecondInput  string                 `json:"per_second_input,omitempty"`
	PerSecondOutput string                 `json:"per_second_output,omitempty"`
	PerImage        string                 `json:"per_image,omitempty"`
	PerToolCall     map[string]string      `json:"per_tool_call,omitempty" doc:"by tool"`
	Factor          map[string]string      `json:"factor,omitempty" doc:"by service tier"`
	ServiceTier     map[string]TokenPrices `json:"service_tier,omitempty" doc:"prices of service tiers that are no multiple of the standard ones"`
}

// TokenPrices are what a million tokens of each kind cost. What a service tier
// leaves out costs what the standard tier says.
type TokenPrices struct {
	Input            string                       `json:"input,omitempty"`
	CachedInput      string                       `json:"cached_input,omitempty"`
	CacheWrite5m     string                       `json:"cache_write_5m,omitempty"`
	CacheWrite1h     string                       `json:"cache_write_1h,omitempty"`
	Output           string                       `json:"output,omitempty"`
	AudioInput       string                       `json:"audio_input,omitempty"`
	CachedAudioInput string                       `json:"cached_audio_input,omitempty"`
	AudioOutput      string                       `json:"audio_output,omitempty"`
	ImageInput       string                       `json:"image_input,omitempty"`
	ImageOutput      string                       `json:"image_output,omitempty"`
	Above            map[string]map[string]string `json:"above,omitempty" doc:"by tokens of input"`
}

// PriceCostRequest prices a usage (SPEC PRC-2).
type PriceCostRequest struct {
	Body CostFields
}

// CostFields name a model as PriceShowRequest does, and a usage in disjoint
// parts.
type CostFields struct {
	Model              string           `json:"model"`
	Provider           string           `json:"provider,omitempty"`
	Input              int64            `json:"input,omitempty"`
	CachedInput        int64            `json:"cached_input,omitempty"`
	CacheWrite5m       int64            `json:"cache_write_5m,omitempty"`
	CacheWrite1h       int64            `json:"cache_write_1h,omitempty"`
	ToolInput          int64            `json:"tool_input,omitempty"`
	AudioInput         int64            `json:"audio_input,omitempty"`
	CachedAudioInput   int64            `json:"cached_audio_input,omitempty"`
	ImageInput         int64            `json:"image_input,omitempty"`
	Output             int64            `json:"output,omitempty"`
	AudioOutput        int64            `json:"audio_output,omitempty"`
	ImageOutput        int64            `json:"image_output,omitempty"`
	AudioInputSeconds  string           `json:"audio_input_seconds,omitempty" doc:"decimal seconds of audio heard"`
	AudioOutputSeconds string           `json:"audio_output_seconds,omitempty" doc:"decimal seconds of audio spoken"`
	Images             int64            `json:"images,omitempty" doc:"images made"`
	ToolCalls          map[string]int64 `json:"tool_calls,omitempty" doc:"calls of the provider's own tools, by name"`
	Requests           int64            `json:"requests,omitempty" doc:"1 when left out"`
	ServiceTier        string           `json:"service_tier,omitempty" doc:"flex, batch, priority"`

	raw []byte
}

// PriceCostAnswer is what a usage costs: its lines, the factor of its service
// tier on the scaled ones, and their sum, rounded up once to a nano-dollar.
type PriceCostAnswer struct {
	Cost         string     `json:"cost" doc:"dollars"`
	Exact        string     `json:"exact" doc:"dollars before the one rounding; cut where it ends in …"`
	Lines        []CostLine `json:"lines"`
	AboveTokens  int64      `json:"above_tokens,omitempty" doc:"the context tier whose prices hold"`
	ServiceTier  string     `json:"service_tier,omitempty"`
	Factor       string     `json:"factor,omitempty" doc:"of the service tier, on the scaled lines; absent where it has prices of its own"`
	TierUnpriced bool       `json:"tier_unpriced,omitempty" doc:"the price names neither factor nor prices for the service tier, which costs what the standard one does"`
	Price        PriceView  `json:"price"`
}

// CostLine is one part of a cost: units at a rate.
type CostLine struct {
	Part   string `json:"part"`
	Units  string `json:"units" doc:"tokens, seconds or pieces"`
	Rate   string `json:"rate" doc:"dollars"`
	Per    string `json:"per" doc:"what the rate is for"`
	Amount string `json:"amount" doc:"dollars, exact"`
	Scaled bool   `json:"scaled,omitempty" doc:"the service tier's factor multiplies it"`
}

// PriceImportRequest imports a published list of prices, whose JSON is the body.
type PriceImportRequest struct {
	Format  string `query:"format" doc:"litellm, models.dev or genai-prices; left out: told by the list's shape"`
	Date    string `query:"date" doc:"the list's day, 2006-01-02; today when left out"`
	DryRun  bool   `query:"dry_run" doc:"tell what would change and change nothing"`
	Confirm bool   `query:"confirm" doc:"take prices above 10,000 dollars"`
	Body    json.RawMessage
}

// PriceImportAnswer is what an import changed, or with DryRun would change.
type PriceImportAnswer struct {
	Format    string        `json:"format"`
	Date      string        `json:"date"`
	DryRun    bool          `json:"dry_run,omitempty"`
	Listed    int           `json:"listed" doc:"prices in the list"`
	Unpriced  int           `json:"unpriced" doc:"models of the list without a price that a row can hold"`
	Added     []PriceChange `json:"added"`
	Changed   []PriceChange `json:"changed"`
	Removed   []PriceChange `json:"removed"`
	Stale     []PriceChange `json:"stale" doc:"in use, not in the list any more, and kept"`
	Unchanged int           `json:"unchanged"`
	Skipped   []PriceNote   `json:"skipped" doc:"not taken, and why"`
	Notes     []PriceNote   `json:"notes" doc:"taken otherwise than the list has it"`
}

// PriceChange is a model's imported prices before and after, by key and, where
// there are several, by the day that they hold from.
type PriceChange struct {
	Provider string              `json:"provider"`
	Model    string              `json:"model"`
	InUse    bool                `json:"in_use,omitempty" doc:"a model of some workspace leads to it"`
	Before   []map[string]string `json:"before,omitempty"`
	After    []map[string]string `json:"after,omitempty"`
}

// PriceNote is something about one model of a list.
type PriceNote struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Field    string `json:"field,omitempty"`
	Text     string `json:"text"`
}
