// SPDX-License-Identifier: Apache-2.0

package app_test

// reloadModels: a request of chatBody costs 320 µ$.
const reloadModels = `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
`
