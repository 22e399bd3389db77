package logstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Object is an object in a bucket.
type Object struct {
	Key      string
	Modified time.Time
	Size     int64
}

// Bucket is what is asked of a bucket. Its methods are safe for concurrent use.
type Bucket interface {
	// Put writes an object, with properties.
	Put(ctx context.Context, key string, data []byte, properties map[string]string) error
	// Properties returns the properties of an object. Their names are in lower case.
	Properties(ctx context.Context, key string) (map[string]string, error)
	// List returns up to 1,000 objects whose keys begin with a prefix and come after another key, in the order of their keys, and whether
	// there are more.
	List(ctx context.Context, prefix, after string) ([]Object, bool, error)
	// Delete deletes an object. It does not fail if there is none.
	Delete(ctx context.Context, key string) error
	// Sign returns an address from which anyone can read an object for a time.
	Sign(ctx context.Context, key string, life time.Duration) (string, error)
}

// requestTimeout limits a request to the bucket, with another try. The end of a job does not wait for it longer.
const requestTimeout = 5 * time.Second

// s3Bucket is a bucket of an S3 server.
type s3Bucket struct {
	name   string
	client *s3.Client
	signer *s3.PresignClient
}

// NewBucket returns the bucket of settings. It sends no request.
func NewBucket(settings Settings) (Bucket, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	const connections = 32
	transport.MaxIdleConnsPerHost = connections
	switch certificates, err := os.ReadFile(filepath.Join(settings.Credentials, "ca.crt")); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read the CA of the log bucket: %w", err)
	default:
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("the CA of the log bucket, %s, contains no certificate in PEM", filepath.Join(settings.Credentials, "ca.crt"))
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	options := func(endpoint string) s3.Options {
		o := s3.Options{
			Region: settings.Region, Credentials: aws.CredentialsProviderFunc(settings.readCredentials),
			HTTPClient: &http.Client{Transport: transport}, RetryMaxAttempts: 2,
			// Other servers than AWS's do not have the checksums that are sent by default.
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		}
		if endpoint != "" {
			// Servers without a name of their own for each bucket are the usual ones.
			o.BaseEndpoint, o.UsePathStyle = &endpoint, true
		}
		return o
	}
	public := settings.PublicEndpoint
	if public == "" {
		public = settings.Endpoint
	}
	return &s3Bucket{name: settings.Bucket, client: s3.New(options(settings.Endpoint)), signer: s3.NewPresignClient(s3.New(options(public)))}, nil
}

// readCredentials reads the keys, which the administrator may replace at any time.
func (s Settings) readCredentials(context.Context) (aws.Credentials, error) {
	var keys [2]string
	for i, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		text, err := os.ReadFile(filepath.Join(s.Credentials, name))
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("read the credentials of the log bucket: %w", err)
		}
		keys[i] = strings.TrimSpace(string(text))
	}
	return aws.Credentials{AccessKeyID: keys[0], SecretAccessKey: keys[1], Source: "folder"}, nil
}

func (b *s3Bucket) Put(ctx context.Context, key string, data []byte, properties map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(data), Metadata: properties})
	return describe("write", key, err)
}

func (b *s3Bucket) Properties(ctx context.Context, key string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return nil, describe("read", key, err)
	}
	properties := map[string]string{}
	for name, value := range object.Metadata {
		properties[strings.ToLower(name)] = value
	}
	return properties, nil
}

func (b *s3Bucket) List(ctx context.Context, prefix, after string) (objects []Object, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	input := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix}
	if after != "" {
		input.StartAfter = &after
	}
	page, err := b.client.ListObjectsV2(ctx, input)
	if err != nil {
		return nil, false, describe("list", prefix, err)
	}
	for _, found := range page.Contents {
		objects = append(objects, Object{Key: aws.ToString(found.Key), Modified: aws.ToTime(found.LastModified), Size: aws.ToInt64(found.Size)})
	}
	return objects, aws.ToBool(page.IsTruncated) && len(objects) > 0, nil
}

func (b *s3Bucket) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key})
	return describe("delete", key, err)
}

func (b *s3Bucket) Sign(ctx context.Context, key string, life time.Duration) (string, error) {
	signed, err := b.signer.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key}, s3.WithPresignExpires(life))
	if err != nil {
		return "", describe("sign the address of", key, err)
	}
	return signed.URL, nil
}

// bucketError is a request to the bucket that failed. Its text has the key of an object, and with it the names of a job's namespace and pod:
// it is for the operator's log alone.
type bucketError struct {
	verb, key string
	cause     error
}

func (e *bucketError) Error() string {
	return fmt.Sprintf("%s %s in the log bucket: %v", e.verb, e.key, e.cause)
}
func (e *bucketError) Unwrap() error { return e.cause }

func describe(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return &bucketError{verb: verb, key: key, cause: err}
}

// answerError is an answer of the server that refuses a request, with a code such as AccessDenied.
type answerError interface {
	error
	ErrorCode() string
}

// causeOf describes why a request failed, without the key of its object: a report may show what failed for another job.
func causeOf(err error) string {
	if answer, is := errors.AsType[answerError](err); is {
		// Its message may name the object and the operator's account.
		return "the log bucket answers " + answer.ErrorCode()
	}
	if failed, is := errors.AsType[*url.Error](err); is {
		// Its own text has the URL.
		return fmt.Sprintf("the server of the log bucket cannot be reached: %v", failed.Err)
	}
	failed, is := errors.AsType[*bucketError](err)
	if !is {
		return err.Error()
	}
	return strings.ReplaceAll(failed.cause.Error(), failed.key, "an object")
}
