package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Costs beyond this are not written down: what a request may be large is in them, and nobody asks how much too much it is.
const most = 1_000_000_000

// cost reads schemas and rules, a line each, and writes what each rule costs at most in front of it.
func cost(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	var structural *schema.Structural
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "{"):
			if structural, err = read(line); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			fmt.Fprintln(&out, line)
		default:
			_, rule, found := strings.Cut(line, "\t")
			if !found || structural == nil {
				return fmt.Errorf("no rule of a schema: %q", line)
			}
			costs, err := costOf(structural, rule)
			if err != nil {
				return fmt.Errorf("%s: %w", rule, err)
			}
			fmt.Fprintf(&out, "%s\t%s\n", costs, rule)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func read(line string) (*schema.Structural, error) {
	var external v1.JSONSchemaProps
	if err := json.Unmarshal([]byte(line), &external); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&internal)
}

func costOf(structural *schema.Structural, rule string) (string, error) {
	asked := *structural
	asked.XValidations = v1.ValidationRules{{Rule: rule}}
	declared := model.SchemaDeclType(&asked, false)
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, err := cel.Compile(&asked, declared, celconfig.PerCallLimit, base, cel.NewExpressionsEnvLoader())
	if err != nil {
		return "", err
	}
	if len(results) != 1 {
		return "", fmt.Errorf("%d results", len(results))
	}
	if results[0].Error != nil {
		return "", results[0].Error
	}
	if results[0].MaxCost > most {
		return ">", nil
	}
	return strconv.FormatUint(results[0].MaxCost, 10), nil
}
