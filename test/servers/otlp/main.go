// SPDX-License-Identifier: Apache-2.0

// Takes OTLP profiles as the OpenTelemetry Collector does, with the Collector's own messages and decoder (its receiver
// cannot be had here): prints a line of JSON for each profile that it gets, with its service, its type, the sum of its
// values, and the sum for each function that a stack ends in. What cannot be decoded is answered with 400.
// usage: otlp ADDRESS
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
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

func show(got pprofile.Profiles) error {
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

func take(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "POST of application/x-protobuf", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(r.Body)
	request := pprofileotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err == nil {
		err = show(request.Profiles())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := pprofileotlp.NewExportResponse().MarshalProto()
	if err != nil {
		log.Fatal(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(answer)
}

func main() {
	http.HandleFunc("/v1development/profiles", take)
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
