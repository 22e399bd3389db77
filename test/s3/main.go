// Command s3 reads and writes objects as ranks of the end-to-end tests do, with nothing but the variables that a data
// connection brings them:
//
//	s3 get KEY > FILE
//	s3 put KEY < FILE
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: s3 get|put KEY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, verb, key string) error {
	client := s3.New(s3.Options{
		Credentials:  credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		BaseEndpoint: aws.String(os.Getenv("AWS_S3_ENDPOINT")),
		Region:       os.Getenv("AWS_DEFAULT_REGION"),
		UsePathStyle: true, // an endpoint that is an address has no names below it
	})
	bucket := aws.String(os.Getenv("AWS_S3_BUCKET"))
	switch verb {
	case "get":
		object, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key})
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, object.Body)
		return err
	case "put":
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(data)})
		return err
	}
	return fmt.Errorf("no verb %q", verb)
}
