// SPDX-License-Identifier: Apache-2.0

// The OTLP receiver of the OpenTelemetry Collector, for profiles: prints a line of JSON for each profile that it gets,
// with its service, its type, the sum of its values, and the sum for each function that a stack ends in.
// usage: otlp ADDRESS
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

type summary struct {
	Service string           `json:"service"`
	Type    string           `json:"type"`
	Unit    string           `json:"unit"`
	Total   int64            `json:"total"`
	Leaves  map[string]int64 `json:"leaves"`
}

func text(d pprofile.ProfilesDictionary, i int32) string {
	return d.StringTable().At(int(i))
}

// The function that the stack of a sample ends in.
func leaf(d pprofile.ProfilesDictionary, stack int32) string {
	locations := d.StackTable().At(int(stack)).LocationIndices()
	if locations.Len() == 0 {
		return ""
	}
	lines := d.LocationTable().At(int(locations.At(0))).Lines()
	if lines.Len() == 0 {
		return ""
	}
	return text(d, d.FunctionTable().At(int(lines.At(0).FunctionIndex())).NameStrindex())
}

func summarize(d pprofile.ProfilesDictionary, p pprofile.Profile, service string) summary {
	s := summary{Service: service, Type: text(d, p.SampleType().TypeStrindex()),
		Unit: text(d, p.SampleType().UnitStrindex()), Leaves: map[string]int64{}}
	for i := 0; i < p.Samples().Len(); i++ {
		sample, sum := p.Samples().At(i), int64(0)
		for k := 0; k < sample.Values().Len(); k++ {
			sum += sample.Values().At(k)
		}
		s.Total += sum
		s.Leaves[leaf(d, sample.StackIndex())] += sum
	}
	return s
}

func take(_ context.Context, got pprofile.Profiles) error {
	out := json.NewEncoder(os.Stdout)
	for i := 0; i < got.ResourceProfiles().Len(); i++ {
		resource := got.ResourceProfiles().At(i)
		service := ""
		if value, ok := resource.Resource().Attributes().Get("service.name"); ok {
			service = value.AsString()
		}
		for j := 0; j < resource.ScopeProfiles().Len(); j++ {
			profiles := resource.ScopeProfiles().At(j).Profiles()
			for k := 0; k < profiles.Len(); k++ {
				if err := out.Encode(summarize(got.Dictionary(), profiles.At(k), service)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func main() {
	ctx := context.Background()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	given := confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": os.Args[1]}}})
	if err := given.Unmarshal(config); err != nil {
		log.Fatal(err)
	}
	consumer, err := xconsumer.NewProfiles(take)
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := factory.(xreceiver.Factory).CreateProfiles(ctx, receivertest.NewNopSettings(factory.Type()),
		config, consumer)
	if err != nil {
		log.Fatal(err)
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		log.Fatal(err)
	}
	select {}
}
