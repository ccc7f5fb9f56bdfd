package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobuf writes each object of a folder, which is there in JSON, in protobuf beside it.
func protobuf(folder string) error {
	apiextensions.Install(scheme.Scheme)
	codecs := serializer.NewCodecFactory(scheme.Scheme)
	info, found := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !found {
		return fmt.Errorf("no codec writes %s", runtime.ContentTypeProtobuf)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		object, kind, err := codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		written, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Group: kind.Group, Version: kind.Version}), object)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(strings.TrimSuffix(file, ".json")+".pb", written, 0o644); err != nil {
			return err
		}
	}
	return nil
}
